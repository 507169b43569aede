# SPDX-License-Identifier: Apache-2.0
"""A platform's part of the stack file, and the options and ports that follow from a job on it.

Checks and the plan both use `JobOnPlatform`, so they cannot differ. A platform's own module is imported on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

from catalog.frameworks import Framework, PortRow
from catalog.platforms import import_platform
from schemas.model import Job, PortRange, Stack

if TYPE_CHECKING:
    from schemas.findings import CheckRule


Options = Mapping[str, bool | int | float | str]


def is_active(row: PortRow, options: Options) -> bool:
    """Whether any node listens on this port."""
    return row.when is None or bool(options.get(row.when))


def default_ports(row: PortRow) -> PortRange | None:
    """The default port or range of a row. None for every port."""
    return None if row.default == "all" else PortRange.from_shorthand(row.default)


@dataclass(frozen=True)
class JobOnPlatform:
    """A job together with its framework, on a platform that pins ports or reserves them (`Stack`)."""

    spec: Job
    framework: Framework
    pins_ports: bool = True
    reserves_ports: bool = False

    @classmethod
    def of(cls, stack: Stack, job: Job, framework: Framework) -> Self:
        return cls(job, framework, stack.pins_ports, stack.reserves_ports)

    @cached_property
    def options(self) -> dict[str, bool | int | float | str]:
        """The options of the job, with the framework's defaults."""
        return {**{name: row.default for name, row in self.framework.options.items()}, **self.spec.options}

    def is_active(self, row: PortRow) -> bool:
        return is_active(row, self.options)

    def is_reserved(self, row: PortRow) -> bool:
        """Whether the platform chooses a port of this row for each node. A program that needs several ports chooses
        free ones itself."""
        takes_one = row.minimum_size == 1 and self.options.get(row.per_node or "", 1) == 1
        return self.reserves_ports and row.pinned == "start-option" and takes_one

    def ports_of(self, row: PortRow) -> PortRange | None:
        """The port or range of a row in this job; None for every port."""
        if self.reserves_ports:
            return None
        value = self.spec.ports.get(row.label)
        if value is None:
            return None if row.pinned == "kernel-range" and not self.pins_ports else default_ports(row)
        return None if value == "all" else value

    @property
    def is_watched(self) -> bool:
        """Whether the run is stopped when all of its nodes are idle. Not if some can continue without the others."""
        return self.framework.gang and self.spec.nodes > 1 and not self.options.get("elastic")

    def numbered(self) -> Iterator[tuple[PortRow, PortRange]]:
        """The rows with fixed port numbers, and these numbers."""
        for row in self.framework.ports:
            ports = self.ports_of(row)
            if ports is not None and self.is_active(row):
                yield row, ports


class StackFile(Protocol):
    """A part of `components.platform.base.Platform`. The keys are in section.schema.json beside each platform.py."""

    @property
    def stack(self) -> type[Stack]:
        """The model of a stack file: the fields of every platform, and this platform's own."""

    def rules(self) -> Mapping[str, CheckRule]:
        """The checks for stacks of this platform only."""

    def facts(self) -> Mapping[str, Any]:
        """`shapes`, `regions` and `realms`, if the platform has them: fields of schemas.facts.Facts."""


@cache
def stack_file(platform: str) -> StackFile:
    part: StackFile = import_platform(platform)
    return part
