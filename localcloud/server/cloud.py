# SPDX-License-Identifier: Apache-2.0
"""The running local cloud, as all its platforms share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from localcloud.server.faults import Faults
from localcloud.server.http import HttpApi
from localcloud.server.state import State


class MachineHosts(Protocol):
    """The hosts of a platform's machines, from which the counts of firewalls are read."""

    def has(self, machine: str) -> bool: ...

    async def evidence(self, machine: str) -> Mapping[str, Any]: ...


class CallRecord(Protocol):
    """The access decisions of an API, as rows with numbers."""

    forgotten: int

    def since(self, number: int) -> list[dict[str, Any]]: ...


@dataclass(kw_only=True)
class ServedCloud:
    """The local cloud that this process serves: its folder, its endpoint, and its APIs."""

    home: Path
    store: State
    endpoint: str = ""
    isolation: str = ""
    faults: Faults = field(init=False)
    # The first API that takes a request answers it.
    apis: Sequence[HttpApi] = ()
    # The facts in the marker, by which clients recognise the cloud and its accounts, from all platforms.
    facts: Mapping[str, str] = field(default_factory=dict)
    other_hosts: list[MachineHosts] = field(default_factory=list)
    # The records of access decisions of APIs that have their own, by the name of the API.
    records: dict[str, CallRecord] = field(default_factory=dict)

    async def evidence(self, machine: str) -> Mapping[str, Any]:
        """The counts of the firewalls of a run's machine, up to now or to its end."""
        return await next(one for one in self.other_hosts if one.has(machine)).evidence(machine)
