# SPDX-License-Identifier: Apache-2.0
"""The options and ports that follow from a job on a platform. Checks and the plan both use `JobOnPlatform`, so they
cannot differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from catalog.frameworks import Framework, PortRow
from schemas.model import Job, PortRange, Stack

Options = Mapping[str, bool | int | float | str]


def is_active(port: PortRow, options: Options) -> bool:
    """Whether any node listens on this port."""
    return port.when is None or bool(options.get(port.when))


def default_ports(port: PortRow) -> PortRange | None:
    """The default port or range of a row. None for every port."""
    return None if port.default == "all" else PortRange.from_shorthand(port.default)


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

    def is_active(self, port: PortRow) -> bool:
        return is_active(port, self.options)

    def is_reserved(self, port: PortRow) -> bool:
        """Whether the platform chooses a port of this row for each node. A program that needs several ports chooses
        free ones itself."""
        takes_one = port.minimum_size == 1 and self.options.get(port.per_node or "", 1) == 1
        return self.reserves_ports and port.pinned == "start-option" and takes_one

    def ports_of(self, port: PortRow) -> PortRange | None:
        """The port or range of a row in this job; None for every port."""
        if self.reserves_ports:
            return None
        value = self.spec.ports.get(port.label)
        if value is None:
            return None if port.pinned == "kernel-range" and not self.pins_ports else default_ports(port)
        return None if value == "all" else value

    @property
    def is_watched(self) -> bool:
        """Whether the run is stopped when all of its nodes are idle. Not if some can continue without the others."""
        return self.framework.gang and self.spec.nodes > 1 and not self.options.get("elastic")

    def numbered(self) -> Iterator[tuple[PortRow, PortRange]]:
        """The rows with fixed port numbers, and these numbers."""
        for port in self.framework.ports:
            ports = self.ports_of(port)
            if ports is not None and self.is_active(port):
                yield port, ports
