# SPDX-License-Identifier: Apache-2.0
"""What all platforms of one local cloud share while its server runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from localcloud.server.faults import Faults
from localcloud.server.http import HttpApi
from localcloud.server.state import State


class MachineHosts(Protocol):
    """The hosts of a platform's machines, for those who ask what their firewalls saw."""

    def has(self, machine: str) -> bool: ...

    async def evidence(self, machine: str) -> Mapping[str, Any]: ...


class CallRecord(Protocol):
    """The access decisions of an API, as rows with numbers."""

    forgotten: int

    def since(self, number: int) -> list[dict[str, Any]]: ...


@dataclass(kw_only=True)
class ServedCloud:
    """The local cloud that this process serves: its folder, its address, and the APIs that answer there."""

    home: Path
    store: State
    endpoint: str = ""
    isolation: str = ""
    faults: Faults = field(init=False)
    # The first one that takes a request answers it.
    apis: Sequence[HttpApi] = ()
    # What clients recognize the cloud and its accounts by: each platform's part of the marker.
    facts: Mapping[str, str] = field(default_factory=dict)
    other_hosts: list[MachineHosts] = field(default_factory=list)
    # The decisions of APIs that keep a record of their own, by the name of the API.
    records: dict[str, CallRecord] = field(default_factory=dict)

    async def evidence(self, machine: str) -> Mapping[str, Any]:
        """What the firewalls of a run's machine counted so far, or until its end."""
        return await next(one for one in self.other_hosts if one.has(machine)).evidence(machine)
