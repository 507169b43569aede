# SPDX-License-Identifier: Apache-2.0
"""A job as the plan needs it: with its name and packages, and what each role listens on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.frameworks import PortRow
from components.plan.model import PackagesPlan
from schemas.job_on_platform import JobOnPlatform
from schemas.model import PortRange


@dataclass(frozen=True, kw_only=True)
class ResolvedJob(JobOnPlatform):
    name: str
    packages: PackagesPlan | None = None

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
