# SPDX-License-Identifier: Apache-2.0
"""A disk outlives its machine, as a snapshot or as discarded hardware. S3, ECR and CloudWatch always encrypt; EBS does
only on request."""

from collections.abc import Mapping
from typing import Any

from policies.rule import (
    PASS,
    Judge,
    JudgedResource,
    PolicyRule,
    PolicyVerdict,
    Unknown,
    by_type,
    fail_because,
    verdict_on_every,
)

TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
INSTANCE = "aws:ec2/instance:Instance"
VOLUME = "aws:ebs/volume:Volume"


def judge_disk(disk: Mapping[str, Any]) -> PolicyVerdict:
    """A launch template has texts in place of booleans."""
    return PASS if str(disk.get("encrypted")).lower() == "true" else fail_because("a disk of it is not encrypted")


def judge_template_disks(resource: JudgedResource) -> PolicyVerdict:
    mapped = resource.properties.get("blockDeviceMappings") or ()
    if not mapped:
        return fail_because("it leaves encryption to the image")
    return verdict_on_every(
        lambda mapping: judge_disk(mapping.get("ebs") or {}),
        [mapping for mapping in mapped if mapping.get("ebs") is not None],
    )


def judge_instance_disks(resource: JudgedResource) -> PolicyVerdict:
    root = resource.properties.get("rootBlockDevice")
    disks = [*([root] if root is not None else []), *(resource.properties.get("ebsBlockDevices") or ())]
    if disks:
        return verdict_on_every(judge_disk, disks)
    from_template = resource.properties.get("launchTemplate") is not None
    return PASS if from_template else fail_because("it leaves encryption to the image")


def judge_volume(resource: JudgedResource) -> PolicyVerdict:
    return judge_disk(resource.properties)


ROWS: Mapping[str, Judge] = {TEMPLATE: judge_template_disks, INSTANCE: judge_instance_disks, VOLUME: judge_volume}


def _template_with_disk(**ebs: Any) -> JudgedResource:
    return JudgedResource(TEMPLATE, {"blockDeviceMappings": [{"deviceName": "/dev/sda1", "ebs": ebs}]})


RULE = PolicyRule(
    id="encrypted-disks",
    level="mandatory",
    asks="Disks of machines are encrypted.",
    remedy="set encrypted: true for each disk, the image's own one too",
    types=tuple(ROWS),
    judge=by_type(ROWS),
    passes={
        "by its template": _template_with_disk(encrypted="true", volumeSize=500),
        "an instance from a template": JudgedResource(INSTANCE, {"launchTemplate": {"id": "lt-0a1b2c3d"}}),
        "an instance's own disk": JudgedResource(INSTANCE, {"rootBlockDevice": {"encrypted": True}}),
        "the machine's own disks": JudgedResource(
            TEMPLATE, {"blockDeviceMappings": [{"virtualName": "ephemeral0"}, {"ebs": {"encrypted": True}}]}
        ),
    },
    fails={
        "not set": _template_with_disk(volumeSize=500),
        "left to the image": JudgedResource(TEMPLATE, {"imageId": "ami-0a1b2c3d"}),
        "one of two": JudgedResource(
            INSTANCE, {"rootBlockDevice": {"encrypted": True}, "ebsBlockDevices": [{"deviceName": "/dev/sdb"}]}
        ),
        "a volume": JudgedResource(VOLUME, {"size": 500}),
    },
    unknown={"decided elsewhere": _template_with_disk(encrypted=Unknown("blockDeviceMappings[0].ebs.encrypted"))},
)
