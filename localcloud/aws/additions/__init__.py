# SPDX-License-Identifier: Apache-2.0
"""What moto lacks and stacks need. Its state is in moto's backends, its operations are a table of ours (`OPERATIONS`)
that stands before moto's.

| module | what it adds | why |
| --- | --- | --- |
| instance_types | dl1.24xlarge, where it is offered, images, quotas of EC2 | moto's data has no Gaudi machine |
| launches, interfaces | whole launch templates, network cards, quota, capacity, client tokens | moto runs anything |
| machine_view | instances that are pending until the hosts say that they run | moto runs nothing |
| placement | placement groups | moto has none |
| reservations | capacity reservations | moto has none |
| changes | tags, peers of rules, attributes of subnets, keys of log groups, deletions | moto ignores these changes |
| buckets | what new buckets have | moto's have nothing |
| log_filters | filter patterns of logs | moto lets every line through that it cannot read |
| policy_simulation | SimulatePrincipalPolicy | moto has none |
| descriptions | descriptions of a security group's rules | moto loses those of rules without a CIDR |
| provider_calls | what only the real provider asks, such as tags of S3 Control | moto knows no missing bucket there |
| commands | commands of Systems Manager that really run | moto answers Success at once |
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from localcloud.aws.additions import (
    buckets,
    changes,
    commands,
    descriptions,
    instance_types,
    launches,
    log_filters,
    placement,
    policy_simulation,
    provider_calls,
    reservations,
)
from localcloud.aws.additions.outside import Operations, Outside, attach

# Operations that stand before moto's, by the module of moto that has the service.
OPERATIONS: Mapping[str, tuple[type[Operations], ...]] = {
    "ec2": (
        placement.PlacementGroups, reservations.CapacityReservations, launches.Launches, changes.Changes,
        instance_types.Offerings,
    ),
    "ssm": (commands.Commands,),
    "servicequotas": (instance_types.Quotas,),
    "iam": (policy_simulation.PolicySimulation,),
    "logs": (changes.KeysOfLogGroups,),
    "kms": (changes.ChangesOfKeys,),
    "s3": (buckets.Payers,),
    "s3control": (provider_calls.TagsOfBuckets,),
}  # fmt: skip


def install(outside: Outside) -> None:
    """Completes moto's classes, once in a process, and gives `outside` to what they got."""
    attach(outside)
    add_to_moto()


@cache
def with_ours(responses: type[Any]) -> type[Any]:
    """A class of moto's responses with our operations before its own."""
    ours = OPERATIONS.get(responses.__module__.split(".")[1], ())
    return type(f"Local{responses.__name__}", (*ours, responses), {}) if ours else responses


@cache
def add_to_moto() -> None:
    """Changes what moto uses in the middle of its own operations: no operation before or after it could."""
    from moto import settings
    from moto.ec2.models.elastic_network_interfaces import Attachment
    from moto.ec2.models.launch_templates import LaunchTemplate
    from moto.ec2.models.security_groups import SecurityGroupRule
    from moto.iam.access_control import PermissionResult
    from moto.logs import models as logs_models
    from moto.s3.models import FakeBucket, FakeDeleteMarker, S3Backend

    # The bucket is in the path here, whatever the Host header says.
    settings.S3_IGNORE_SUBDOMAIN_BUCKETNAME = True
    instance_types.install()
    log_filters.install(logs_models)
    changes.install(LaunchTemplate)
    buckets.install(S3Backend)
    descriptions.install(SecurityGroupRule)
    # Bucket policies were judged before, with their conditions, which moto's own judge of them does not read.
    FakeBucket.get_permission = lambda self, action, resource: PermissionResult.NEUTRAL
    # moto frees every version of a key that goes, and forgets that a delete marker holds nothing: a bucket with one of
    # an object's name, and nothing else, could not be emptied.
    FakeDeleteMarker.dispose = lambda self: None
    _show_cards(Attachment)


def _show_cards(attachment: type) -> None:
    """Lets the attachment of an interface show its network card."""
    original = attachment.__init__  # type: ignore[misc]

    def make(self: object, eni: object) -> None:
        original(self, eni)
        self.network_card_index = getattr(eni, "network_card_index", 0)  # type: ignore[attr-defined]

    attachment.__init__ = make  # type: ignore[misc]
