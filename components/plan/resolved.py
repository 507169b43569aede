# SPDX-License-Identifier: Apache-2.0
"""A job together with its framework: every option has a value, and every port is chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from catalog.frameworks import Framework, PortRow
from components.plan.model import PackagesPlan
from schemas.model import Job, PortRange

Options = Mapping[str, bool | int | float | str]


def is_active(row: PortRow, options: Options) -> bool:
    """Whether any node listens on this port."""
    return row.when is None or bool(options.get(row.when))


def default_ports(row: PortRow) -> PortRange | None:
    """The default port or range of a row. None for every port."""
    return None if row.default == "all" else PortRange.from_shorthand(row.default)


@dataclass(frozen=True)
class ResolvedJob:
    name: str
    spec: Job
    framework: Framework
    packages: PackagesPlan | None = None
    pins_ports: bool = True
    reserves_ports: bool = False

    @cached_property
    def options(self) -> dict[str, bool | int | float | str]:
        """The options of the job, with the framework's defaults."""
        return {**{name: row.default for name, row in self.framework.options.items()}, **self.spec.options}

    def is_active(self, row: PortRow) -> bool:
        return is_active(row, self.options)

    def is_reserved(self, row: PortRow) -> bool:
        """Whether the platform chooses a port of this row for each node. What takes several ports chooses free ones."""
        size = self.options.get(row.per_node or "", 1)
        return self.reserves_ports and row.pinned == "start-option" and size == 1

    def ports_of(self, row: PortRow) -> PortRange | None:
        """The port or range of a row in this job; None for every port."""
        if self.reserves_ports:
            return None
        value = self.spec.ports.get(row.label)
        if value is None:
            return None if row.pinned == "kernel-range" and not self.pins_ports else default_ports(row)
        return None if value == "all" else value

    def listens_on(self, role: str) -> dict[str, PortRange | None]:
        """The ports one role listens on, by label."""
        return {row.label: self.ports_of(row) for row in self.active_ports() if role in row.listens}

    def active_ports(self) -> Iterator[PortRow]:
        """Those where a node listens. Behind an option that is off a program may still be told a port of its own: it
        needs one where nodes share the network of their hosts."""
        return (row for row in self.framework.ports if self.is_active(row) or self._is_told(row))

    def _is_told(self, row: PortRow) -> bool:
        words = (word for role in self.framework.roles.values() for word in role.start)
        return self.is_reserved(row) and any(f"{{port.{row.label}}}" in word for word in words)

    def called(self, role: str) -> str:
        """The role's name on the nodes: a renamed role keeps its oldest name there."""
        return self.spec.roles[role].was.first(role) if role in self.spec.roles else role

    @property
    def roles(self) -> list[str]:
        """Roles with nodes, in the framework's order, the main role first. Ranks follow this order."""
        return [role for role in self.framework.roles if role in self.spec.roles and self.spec.roles[role].replicas]
