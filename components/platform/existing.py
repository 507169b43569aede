# SPDX-License-Identifier: Apache-2.0
"""Resources that exist, for a new stack file (`trainyard init --existing`): the keys that name them, or those that
describe them, and the ids by which Pulumi imports what a stack would make (`--import`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

from catalog.platforms import Capability
from components.platform.calls import ProviderError
from components.platform.client import Where
from components.platform.review import Snapshot

_SUBNET_PREFIX = 24
# Tags of trainyard's own resources that say whose they are.
TAGS = ("team", "environment", "stack")


class ExistingError(ProviderError):
    """An id that cannot be used. The text is for its user."""


@dataclass
class FoundResources:
    """`keys`: of the stack file, each with a mapping. `tags`: what the tags of trainyard's own resources say.
    `remarks`: what a person has to know."""

    keys: dict[str, dict[str, Any]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def add(self, key: str, values: Mapping[str, Any], tags: Mapping[str, str] | None = None) -> None:
        self.keys.setdefault(key, {}).update(values)
        if (tags or {}).get("managed-by") == "trainyard":
            self.tags.update({name: value for name, value in (tags or {}).items() if name in TAGS})


@dataclass(frozen=True, slots=True)
class FoundIds:
    """`ids`: by the URN of a resource of the program, in the form that `pulumi import` takes. `missing`: resources that
    are not there, and will be made. `version`: of the provider."""

    ids: Mapping[str, str]
    missing: tuple[str, ...] = ()
    package: str = ""


def free_block(blocks: Sequence[str], taken: Sequence[str]) -> str | None:
    """A block for a subnet that overlaps with no other one."""
    others = [ip_network(cidr) for cidr in taken if cidr]
    for block in map(ip_network, blocks):
        for part in block.subnets(new_prefix=max(_SUBNET_PREFIX, block.prefixlen)):
            if not any(part.overlaps(other) for other in others):
                return str(part)
    return None


class ExistingResources(Capability, ABC):
    place = "client.existing.EXISTING"
    lacking = "resources of {platform} cannot be read by their ids: write their names into the stack file"
    error = ExistingError

    @abstractmethod
    def read(self, ids: Sequence[str], where: Where, manages: bool) -> FoundResources:
        """The keys that name these resources; with `manages` those that describe them, so that the stack has them as
        its own. Raises ExistingError for an id that is of no use here."""

    @abstractmethod
    def find_ids(self, snapshot: Snapshot, ids: Sequence[str], where: Where) -> FoundIds:
        """The ids of what the recorded program makes and the cloud already has. `ids`: those that the user named, which
        count before others of the same name."""
