# SPDX-License-Identifier: Apache-2.0
"""What moto's handlers reach outside moto: the hosts, the faults, and steps that wait until a call is on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from localcloud.aws.machines import Machines


@dataclass
class Outside:
    """`no_capacity(type)` and `limit(name)` ask the faults. `later` runs once the state is on disk: what the hosts
    hear has happened, also after a kill."""

    machines: Machines
    no_capacity: Callable[[str], bool] = lambda kind: False
    limit: Callable[[str], int | None] = lambda name: None
    session_seconds: Callable[[], float] = lambda: 0.0
    metadata_path: Callable[[str], str] = lambda instance: ""
    _steps: list[Callable[[], None]] = field(default_factory=list)

    def later(self, step: Callable[[], None]) -> None:
        self._steps.append(step)

    def forget(self) -> None:
        self._steps.clear()

    def carry_out(self) -> None:
        steps, self._steps = self._steps, []
        for step in steps:
            step()


_outside: list[Outside] = []


def attach(outside: Outside) -> None:
    """moto's handlers are made anew for each request, so they find it here. A process has one local AWS."""
    _outside[:] = [outside]


def outside() -> Outside:
    return _outside[0]


def held(backend: Any, name: str) -> dict[str, Any]:
    """A table of ours in a backend of moto's: it is kept and restored with the backend."""
    table: dict[str, Any] = backend.__dict__.setdefault(f"trainyard_{name}", {})
    return table


class Operations:
    """Operations of ours, as methods with the names that moto gives them. They stand before moto's class of responses,
    so `self` has all that moto's own handlers have."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def _by_moto(self, operation: str) -> Any:
        """What moto does at this operation."""
        return getattr(super(), operation)()


def filtered(rows: list[dict[str, Any]], wanted: Mapping[str, Any], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The resources of ours, as they are shown, that fit the filters of a call. `names` says where each filter looks.
    One that is not there is refused by name: an answer that ignores it would be wrong."""
    for name in wanted:
        if not (name.startswith("tag:") or name == "tag-key" or name in names):
            raise NotImplementedError(f"The filter '{name}' for it")
    return [row for row in rows if all(set(values) & _asked(row, name, names) for name, values in wanted.items())]


def _asked(row: Mapping[str, Any], name: str, names: Mapping[str, str]) -> set[str]:
    tags = {tag["Key"]: tag["Value"] for tag in row.get("Tags", [])}
    if name == "tag-key":
        return set(tags)
    key = name.removeprefix("tag:")
    if key != name:
        return {tags[key]} if key in tags else set()
    return {str(row.get(names[name], ""))}


def ec2_error(code: str, message: str) -> Exception:
    from moto.ec2.exceptions import EC2ClientError

    error: Exception = EC2ClientError(code, message)
    return error
