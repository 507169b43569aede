# SPDX-License-Identifier: Apache-2.0
"""Adds operations and data that moto lacks and stacks need. They keep their state in moto's backends.

| module | what it adds | why |
| --- | --- | --- |
| instance_types | machines, their zones, images with public parameters, quotas | moto's data lacks most of them |
| launches | network cards, quota, capacity, client tokens | moto ignores most of this |
| machine_view | instances that are pending until the hosts report that they run | moto starts no machines |
| placement | placement groups | moto has none |
| capacity | capacity reservations and capacity blocks | moto has none |
| changes | tags, peers of rules, attributes of subnets, keys of log groups, deletions | moto refuses or ignores these |
| buckets | default settings, encoded names in lists, tags of new and of missing buckets | moto has none of them |
| log_filters | filter patterns, a limit of events | moto returns all lines for many patterns, and keeps all |
| policy_simulation | SimulatePrincipalPolicy | moto has none |
| descriptions | descriptions of a security group's rules | moto loses those of rules without a CIDR |
| commands | commands of Systems Manager that the hosts run | moto answers Success at once |
| tagged_resources | more types in GetResources of the tagging API | moto leaves most of EC2's and ECR's out |
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from localcloud.aws import identities, kept
from localcloud.aws.additions import (
    buckets,
    capacity,
    changes,
    commands,
    descriptions,
    instance_types,
    launches,
    log_filters,
    placement,
    policy_simulation,
    tagged_resources,
)
from localcloud.aws.additions.outside import Operations, Outside, attach_outside, complete_new_objects

# The operations that override moto's, by moto's module of the service.
OPERATIONS: Mapping[str, tuple[type[Operations], ...]] = {
    "ec2": (
        placement.PlacementGroups, capacity.CapacityReservations, launches.Launches, changes.Changes,
        instance_types.Offerings,
    ),
    "ssm": (commands.Commands,),
    "servicequotas": (instance_types.Quotas,),
    "iam": (policy_simulation.PolicySimulation,),
    "logs": (changes.LogGroupKeys,),
    "kms": (changes.KmsKeys,),
    "s3": (buckets.BucketOperations,),
    "s3control": (buckets.BucketTags,),
}  # fmt: skip


def install_additions(outside: Outside) -> None:
    """Changes moto's classes, once in a process, and makes `outside` available to our operations."""
    attach_outside(outside)
    add_to_moto()


@cache
def add_own_operations(responses: type[Any]) -> type[Any]:
    """A subclass of a moto response class in which our operations override moto's."""
    ours = OPERATIONS.get(responses.__module__.split(".")[1], ())
    return type(f"Local{responses.__name__}", (*ours, responses), {}) if ours else responses


@cache
def add_to_moto() -> None:
    """Changes functions and data that moto's operations use. Overriding the operations would not help there."""
    from moto import settings
    from moto.ec2.models.elastic_network_interfaces import Attachment
    from moto.ec2.models.iam_instance_profile import IamInstanceProfileAssociation
    from moto.ec2.models.launch_templates import LaunchTemplate
    from moto.ec2.models.security_groups import SecurityGroupRule
    from moto.iam import models as iam_models
    from moto.iam.access_control import PermissionResult
    from moto.iam.models import InstanceProfile
    from moto.logs import models as logs_models
    from moto.resourcegroupstaggingapi import models as tagging_models
    from moto.s3.models import FakeBucket, FakeDeleteMarker, S3Backend
    from moto.s3.responses import S3Response
    from moto.sts.models import AssumedRole

    # Here the bucket is always in the path, and never in the Host header.
    settings.S3_IGNORE_SUBDOMAIN_BUCKETNAME = True
    # As AWS names the role of spot instances: AWSServiceRoleForEC2Spot.
    iam_models.SERVICE_NAME_CONVERSION["spot"] = "EC2Spot"
    instance_types.install_instance_types()
    log_filters.install_log_filters(logs_models)
    tagged_resources.install_tagged_resources(tagging_models)
    changes.install_template_changes(LaunchTemplate)
    buckets.install_bucket_defaults(S3Backend)
    buckets.encode_lists(S3Response)
    complete_new_objects(SecurityGroupRule, descriptions.complete_rule)
    SecurityGroupRule.description = property(descriptions.rule_description)
    # Our access check has already evaluated the bucket policy. moto's own evaluation ignores conditions.
    FakeBucket.get_permission = lambda self, action, resource: PermissionResult.NEUTRAL
    # When moto removes a key, it disposes of the content of all versions, and fails at delete markers, which have none.
    # Then a bucket with delete markers could not be emptied.
    FakeDeleteMarker.dispose = lambda self: None

    def show_card(attachment: Any, interface: Any) -> None:
        attachment.network_card_index = getattr(interface, "network_card_index", 0)

    complete_new_objects(Attachment, show_card)
    complete_new_objects(AssumedRole, identities.remember_session)
    complete_new_objects(InstanceProfile, identities.give_profile_id)
    complete_new_objects(IamInstanceProfileAssociation, identities.show_profile_id)
    kept.watch_backends()
