# SPDX-License-Identifier: Apache-2.0
"""Fault injection: what fails, how often, and for which operations."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any, Protocol

from localcloud.server.api_errors import ApiError, invalid_parameter

MAXIMUM_SECONDS = 3600.0
# What each kind of fault does, and its own settings. The first setting is required.
KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "latency": ("the answer comes this many seconds later", ("seconds",)),
    "status": ("the call is refused with this status before it changes anything", ("status", "code")),
    "drop": ("the connection ends before the call changes anything", ()),
    "lost-answer": ("the call succeeds, but the connection ends before its answer", ()),
    "no-capacity": ("a run or notebook on this shape is refused: out of host capacity", ("shape",)),
    "spot": ("spot machines of this type get the notice that they are taken back", ("shape",)),
    "disk": ("nodes that start have a disk of this many MiB", ("value",)),
    "limit": ("the limit has this value, and requests beyond it are refused", ("limit", "value", "code")),
    "transition": ("a resource takes this many seconds to be created or deleted", ("seconds",)),
    "token": ("the tokens of runs and notebooks expire after this many seconds", ("seconds",)),
    "access": ("policies and dynamic groups come into force this many seconds late", ("seconds",)),
}
_CODES = {429: "TooManyRequests", 500: "InternalError", 502: "BadGateway", 503: "ServiceUnavailable"}
_LIMIT_CODES = ("LimitExceeded", "QuotaExceeded")
REQUESTED = "A fault was requested for this call"
log = logging.getLogger("localcloud")


@dataclass(frozen=True)
class Fault:
    """A fault. `operations`: a shell pattern. `times` 0: without limit. Chance depends only on the seed and the number
    of calls so far."""

    id: str
    kind: str
    operations: str = "*"
    rate: float = 1.0
    seed: int = 0
    times: int = 0
    seconds: float = 0.0
    status: int = 0
    code: str = ""
    shape: str = ""
    limit: str = ""
    value: int = 0
    seen: int = 0
    done: int = 0

    def strikes(self) -> bool:
        """Whether the fault strikes the next call that matches it."""
        if self.times and self.done >= self.times:
            return False
        return self.rate >= 1 or random.Random(f"{self.seed} {self.seen}").random() < self.rate


class FaultRows(Protocol):
    """The storage of faults on disk, so that they survive a kill of the server."""

    def load(self) -> Iterable[Mapping[str, Any]]: ...
    def new_id(self) -> str: ...
    def add(self, identifier: str, name: str, row: Mapping[str, Any]) -> None: ...
    def change(self, identifier: str, row: Mapping[str, Any]) -> None: ...
    def remove(self, identifier: str) -> None: ...


class Faults:
    """The faults in force."""

    def __init__(self, stored: FaultRows) -> None:
        self._stored = stored
        self._rows = {fault.id: fault for fault in (Fault(**row) for row in stored.load())}

    def list(self) -> list[dict[str, Any]]:
        return [_render_fault(fault) for fault in self._rows.values()]

    def add(self, settings: Any) -> dict[str, Any]:
        if not isinstance(settings, dict) or settings.get("kind") not in KINDS:
            raise invalid_parameter(f"kind must be one of {', '.join(KINDS)}")
        kind = settings["kind"]
        takes = {"kind", "operations", "rate", "seed", "times", *KINDS[kind][1]}
        if unknown := sorted(set(settings) - takes):
            raise invalid_parameter(
                f"a fault of kind {kind} takes {', '.join(sorted(takes - {'kind'}))}, not {unknown[0]}"
            )
        if lacking := [name for name in KINDS[kind][1][:1] if name not in settings]:
            raise invalid_parameter(f"a fault of kind {kind} needs {lacking[0]}: {KINDS[kind][0]}")
        types = {field.name: field.type for field in fields(Fault)}
        for name, value in settings.items():
            if not _fits_type(str(types[name]), value):
                raise invalid_parameter(f"{name} must be {_WORDS[str(types[name])]}, not {value!r}")
        fault = Fault(self._stored.new_id(), **settings)
        wrong = {
            "rate must be from 0 to 1": fault.rate > 1,
            f"seconds must be from 0 to {MAXIMUM_SECONDS:.0f}": fault.seconds > MAXIMUM_SECONDS,
            "status must be from 400 to 599": fault.kind == "status" and not 400 <= fault.status <= 599,
            f"code must be one of {', '.join(_LIMIT_CODES)}": fault.kind == "limit"
            and fault.code not in ("", *_LIMIT_CODES),
        }
        for message, applies in wrong.items():
            if applies:
                raise invalid_parameter(message)
        self._stored.add(fault.id, fault.kind, asdict(fault))
        self._rows[fault.id] = fault
        return _render_fault(fault)

    def clear(self, identifier: str = "") -> int:
        gone = [name for name in self._rows if identifier in ("", name)]
        for name in gone:
            self._stored.remove(name)
            del self._rows[name]
        return len(gone)

    def strike(self, kind: str, operation: str, about: Callable[[Fault], bool] = lambda fault: True) -> Fault | None:
        """The first fault of a kind that strikes this call. All matching faults count the call."""
        if not self._rows:
            return None
        struck = None
        for fault in list(self._rows.values()):
            if fault.kind != kind or not fnmatchcase(operation, fault.operations) or not about(fault):
                continue
            strikes = struck is None and fault.strikes()
            self._keep(replace(fault, seen=fault.seen + 1, done=fault.done + strikes))
            if strikes:
                struck = fault
                shown = [item for item in _render_fault(fault).items() if item[0] not in ("seen", "done")]
                log.warning("fault %s strikes %s", " ".join(f"{name}={value}" for name, value in shown), operation)
        return struck

    def seconds(self, kind: str, operation: str) -> float:
        struck = self.strike(kind, operation)
        return struck.seconds if struck else 0.0

    def disk_bytes(self) -> int:
        """The size of the disk of a run's nodes that start now, in bytes; 0 if no fault strikes."""
        struck = self.strike("disk", "StartNode")
        return struck.value << 20 if struck else 0

    def limit(self, name: str) -> Fault | None:
        """The fault that sets a limit, if there is one. Reading it does not count as a strike."""
        return next((fault for fault in self._rows.values() if fault.kind == "limit" and fault.limit == name), None)

    def _keep(self, fault: Fault) -> None:
        self._rows[fault.id] = fault
        self._stored.change(fault.id, asdict(fault))


class DroppedError(Exception):
    """The server must end the connection without an answer."""


def fault_refusal(fault: Fault) -> ApiError:
    """The refusal of a call that a fault of the kind `status` strikes."""
    code = fault.code or _CODES.get(fault.status, "InternalError" if fault.status >= 500 else "InvalidParameter")
    return ApiError(fault.status, code, REQUESTED)


async def strike_before(faults: Faults, operation: str, refusal: Callable[[Fault], ApiError] = fault_refusal) -> None:
    """Applies the faults that strike before a call runs."""
    if seconds := faults.seconds("latency", operation):
        await asyncio.sleep(seconds)
    if faults.strike("drop", operation):
        raise DroppedError
    if struck := faults.strike("status", operation):
        raise refusal(struck)


def strike_after(faults: Faults, operation: str) -> None:
    """Applies the faults that strike after a call ran."""
    if faults.strike("lost-answer", operation):
        raise DroppedError


def _render_fault(fault: Fault) -> dict[str, Any]:
    always = ("id", "kind", "operations", "rate", "seen", "done")
    return {name: value for name, value in asdict(fault).items() if name in always or value}


_WORDS = {"str": "text", "int": "a whole number, not negative", "float": "a number, not negative"}


def _fits_type(type_name: str, value: Any) -> bool:
    if type_name == "str":
        return isinstance(value, str) and len(value) <= 255
    if isinstance(value, bool) or not isinstance(value, int if type_name == "int" else int | float):
        return False
    return 0 <= value < 2**53
