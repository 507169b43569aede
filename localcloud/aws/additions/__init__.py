# SPDX-License-Identifier: Apache-2.0
"""What moto lacks and stacks need, in moto's own manner: state in its backends, handlers in its responses.

| module | what it adds | why |
| --- | --- | --- |
| instance_types | dl1.24xlarge, where it is offered, images, quotas of EC2 | moto's data has no Gaudi machine |
| launches, interfaces | whole launch templates, network cards, quota, capacity, client tokens | moto runs anything |
| machine_view | instances that are pending until the hosts say that they run | moto runs nothing |
| placement | placement groups | moto has none |
| reservations | capacity reservations | moto has none |
| changes | tags, peers of rules, attributes of subnets, keys of log groups | moto refuses or ignores these changes |
| commands | commands of Systems Manager that really run | moto answers Success at once |
"""

from __future__ import annotations

from functools import cache

from localcloud.aws.additions import changes, commands, instance_types, launches, placement, reservations
from localcloud.aws.additions.outside import Outside, add_handlers, attach
from localcloud.aws.door import carry_out_what_was_judged


def install(outside: Outside) -> None:
    """Gives moto's classes what they lack, once in a process, and `outside` to what they got."""
    attach(outside)
    _install()


@cache
def _install() -> None:
    from moto import settings
    from moto.ec2.models import EC2Backend
    from moto.ec2.models.elastic_network_interfaces import Attachment
    from moto.ec2.models.instances import Instance
    from moto.ec2.models.launch_templates import LaunchTemplate
    from moto.ec2.responses import EC2Response
    from moto.iam.access_control import PermissionResult
    from moto.logs.responses import LogsResponse
    from moto.s3.models import FakeBucket
    from moto.servicequotas.responses import ServiceQuotasResponse
    from moto.ssm.responses import SimpleSystemManagerResponse

    # The bucket is in the path here, whatever the Host header says.
    settings.S3_IGNORE_SUBDOMAIN_BUCKETNAME = True
    instance_types.install()
    carry_out_what_was_judged()
    add_handlers(EC2Response, placement.PlacementGroups)
    add_handlers(EC2Response, reservations.CapacityReservations)
    add_handlers(SimpleSystemManagerResponse, commands.Commands)
    add_handlers(ServiceQuotasResponse, instance_types.Quotas)
    add_handlers(LogsResponse, changes.KeysOfLogGroups)
    changes.install(EC2Response, EC2Backend, LaunchTemplate)
    # Bucket policies were judged before, with their conditions, which moto's own judge of them does not read.
    FakeBucket.get_permission = lambda self, action, resource: PermissionResult.NEUTRAL
    launches.install(EC2Response, Instance)
    _show_cards(Attachment)


def _show_cards(attachment: type) -> None:
    """Lets the attachment of an interface show its network card."""
    original = attachment.__init__  # type: ignore[misc]

    def make(self: object, eni: object) -> None:
        original(self, eni)
        self.network_card_index = getattr(eni, "network_card_index", 0)  # type: ignore[attr-defined]

    attachment.__init__ = make  # type: ignore[misc]
