# SPDX-License-Identifier: Apache-2.0
"""The Stack of AWS DL1: everybody's columns, and those that only AWS has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from schemas.model import Access, Network, Stack, StackPlace

VARIABLES = {
    "AWS_": "AWS's clients read it; a node acts by its role",
    "FI_EFA_": "it follows from the node's kernel and network cards",
    "HABANA_": "the accelerators' runtime reads it",
}


@dataclass(frozen=True, slots=True)
class AwsUsers:
    """Who starts runs: a group of IAM users, or a role that people take on."""

    group: str | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True)
class AwsAccess(Access):
    users: AwsUsers = AwsUsers()
    runs: str | None = None  # an existing role of the nodes; made when absent


@dataclass(frozen=True, slots=True)
class AwsNetwork(Network):
    vpc: str | None = None
    security_group: str | None = None  # of an existing subnet's nodes

    prefixes: ClassVar[tuple[int, int]] = (16, 28)
    # The first four addresses and the last one of every subnet.
    reserved_addresses: ClassVar[int] = 5
    beside_subnet: ClassVar[tuple[str, ...]] = ("subnet", "security_group")
    inside_key: ClassVar[str] = "vpc"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsDl1Stack(Stack):
    account: str | None = None
    access: AwsAccess = AwsAccess()
    network: AwsNetwork = AwsNetwork()

    variables: ClassVar[Mapping[str, str]] = VARIABLES

    def is_inside(self, host: str) -> bool:
        """Where the gateway of the object store leads."""
        return host.startswith("s3.") and host.endswith(".amazonaws.com")

    def place(self) -> tuple[StackPlace, ...]:
        return (StackPlace("account", "in the account", self.account),)
