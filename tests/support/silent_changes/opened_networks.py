# SPDX-License-Identifier: Apache-2.0
"""Ways in and out that a stack file opens, and networks of which nobody knows what they let in."""

from __future__ import annotations

from typing import Any

from tests.support.silence import PAI, Document, SilentChange

EXPOSURE = frozenset({"exposure"})
IN_A_VCN, IN_A_VPC, ON_ANOTHER_STACK = "oci-existing-vcn", "aws-dl1-existing-vpc", "oci-team"


def _in_a_subnet(document: Document) -> None:
    document["config"]["trainyard:network"] = {"subnet": "ocid1.subnet.oc1.iad.aaaaaaaaexamplesubnetrisk"}


def _on_the_network_of(stack: str) -> Any:
    return lambda document: document["config"]["trainyard:uses"].update(stack=f"organization/trainyard/{stack}")


NAT = SilentChange(
    number=9,
    title="a way out to the internet",
    change=lambda document: document["config"]["trainyard:network"].update(nat=True),
    shows=("opens: the subnet: to 0.0.0.0/0 through a NAT gateway (outside of the stack)",),
    trips=EXPOSURE,
)
NEW_IN_A_SUBNET = SilentChange(
    number=9,
    title="a new stack in a subnet of somebody",
    is_new=True,
    change=_in_a_subnet,
    shows=("new stack", "opens: not known: the subnet ocid1.subnet.oc1.iad.aaaaaaaaexamplesubnetrisk is not the"),
    trips=EXPOSURE,
)
ON_THE_STACK_BESIDE = SilentChange(
    number=9,
    title="a new stack on the network of one beside it",
    stack=ON_ANOTHER_STACK,
    is_new=True,
    change=_on_the_network_of(NAT.stack_name),
    shows=("not known: network: the subnet is that of the stack organization/trainyard/a-way-out-to-the-internet",),
    passes=EXPOSURE,
)

CHANGES = (
    NAT,
    NEW_IN_A_SUBNET,
    ON_THE_STACK_BESIDE,
    SilentChange(
        number=9,
        title="a new stack in a security group of somebody",
        stack=IN_A_VPC,
        is_new=True,
        shows=("opens: not known: the security group sg-0c0a1b2c3d4e5f602 in the subnet subnet-0c0a1b2c3d4e5f601",),
        trips=EXPOSURE,
    ),
    SilentChange(
        number=9,
        title="a new stack with a route table of somebody",
        stack=IN_A_VCN,
        is_new=True,
        shows=("through the route table ocid1.routetable.oc1.iad.aaaaaaaaexampleroutetablecompany, whose routes are",),
        trips=EXPOSURE,
    ),
    SilentChange(
        number=9,
        title="a new stack on the network of a cluster",
        stack=PAI,
        is_new=True,
        shows=("opens: not known: OpenPAI has no API for networks",),
        trips=EXPOSURE,
    ),
    SilentChange(
        number=9,
        title="a new stack on the network of another project",
        stack=ON_ANOTHER_STACK,
        is_new=True,
        change=_on_the_network_of("elsewhere"),
        shows=("opens: not known: the subnet is that of the stack organization/trainyard/elsewhere",),
        trips=EXPOSURE,
    ),
    SilentChange(
        number=9,
        title="a new stack on a network through one that has none",
        stack=ON_ANOTHER_STACK,
        is_new=True,
        change=_on_the_network_of(NEW_IN_A_SUBNET.stack_name),
        shows=("opens: not known: the subnet is that of the stack organization/trainyard/a-new-stack-in-a-subnet",),
        trips=EXPOSURE,
    ),
    SilentChange(
        number=9,
        title="a new stack on a network through one beside it",
        stack=ON_ANOTHER_STACK,
        is_new=True,
        change=_on_the_network_of(ON_THE_STACK_BESIDE.stack_name),
        shows=("not known: network: the subnet is that of the stack",),
        passes=EXPOSURE,
    ),
)
