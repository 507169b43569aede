# SPDX-License-Identifier: Apache-2.0
"""A machine's metadata service hands out the role's keys. Its older protocol gives them to any process that can send
one plain request, such as a web page that a library was tricked into fetching."""

from collections.abc import Mapping
from typing import Any

from policies.rule import PASS, Judge, JudgedResource, PolicyRule, PolicyVerdict, Unknown, by_type, fail_because

TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
INSTANCE = "aws:ec2/instance:Instance"
REQUIRED, OFF = "required", "disabled"


def judge_template_metadata(resource: JudgedResource) -> PolicyVerdict:
    options: Mapping[str, Any] = resource.properties.get("metadataOptions") or {}
    if options.get("httpEndpoint") == OFF or options.get("httpTokens") == REQUIRED:
        return PASS
    return fail_because("its metadata service answers without a token")


def judge_instance_metadata(resource: JudgedResource) -> PolicyVerdict:
    """Options that an instance does not set come from its launch template."""
    from_template = resource.properties.get("launchTemplate") is not None
    if from_template and resource.properties.get("metadataOptions") is None:
        return PASS
    return judge_template_metadata(resource)


ROWS: Mapping[str, Judge] = {TEMPLATE: judge_template_metadata, INSTANCE: judge_instance_metadata}

RULE = PolicyRule(
    id="imdsv2",
    level="mandatory",
    asks="The metadata service of a machine answers only with a token.",
    remedy=f"set metadataOptions: {{ httpTokens: {REQUIRED} }}",
    types=tuple(ROWS),
    judge=by_type(ROWS),
    passes={
        "a token required": JudgedResource(TEMPLATE, {"metadataOptions": {"httpTokens": REQUIRED}}),
        "no metadata at all": JudgedResource(TEMPLATE, {"metadataOptions": {"httpEndpoint": OFF}}),
        "an instance from a template": JudgedResource(
            INSTANCE, {"launchTemplate": {"id": Unknown("launchTemplate.id")}}
        ),
    },
    fails={
        "not set": JudgedResource(TEMPLATE, {"imageId": "ami-0a1b2c3d"}),
        "optional": JudgedResource(TEMPLATE, {"metadataOptions": {"httpTokens": "optional"}}),
        "an instance on its own": JudgedResource(INSTANCE, {"ami": "ami-0a1b2c3d"}),
        "an instance that overrules its template": JudgedResource(
            INSTANCE, {"launchTemplate": {"id": "lt-0a1b2c3d"}, "metadataOptions": {"httpTokens": "optional"}}
        ),
    },
    unknown={
        "decided elsewhere": JudgedResource(
            TEMPLATE, {"metadataOptions": {"httpTokens": Unknown("metadataOptions.httpTokens")}}
        )
    },
)
