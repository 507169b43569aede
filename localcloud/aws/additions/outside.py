# SPDX-License-Identifier: Apache-2.0
"""Gives our operations inside moto access to the hosts and the faults, and has the helpers that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from localcloud.aws.machines import Machines


@dataclass
class Outside:
    """The hosts and the faults. `no_capacity(type)`, `spot_notice(type)`, `limit(name)` and `session_seconds()` read
    the faults.

    Calls of the hosts are deferred until the changes of the current call are saved. So the hosts never learn of a
    change that a kill of the cloud could undo.
    """

    machines: Machines
    no_capacity: Callable[[str], bool] = lambda kind: False
    spot_notice: Callable[[str], bool] = lambda kind: False
    limit: Callable[[str], int | None] = lambda name: None
    session_seconds: Callable[[], float] = lambda: 0.0
    metadata_path: Callable[[str], str] = lambda instance: ""
    _deferred: list[Callable[[], None]] = field(default_factory=list)

    def defer(self, step: Callable[[], None]) -> None:
        self._deferred.append(step)

    def drop_deferred(self) -> None:
        self._deferred.clear()

    def run_deferred(self) -> None:
        steps, self._deferred = self._deferred, []
        for step in steps:
            self.machines.later(step)


_outside: list[Outside] = []


def attach_outside(outside: Outside) -> None:
    """Stores `outside` in this module, because moto creates its handlers for each request. A process has only one local
    AWS."""
    _outside[:] = [outside]


def attached_outside() -> Outside:
    return _outside[0]


def complete_new_objects(kind: Any, complete: Callable[..., None]) -> None:
    """Changes a class of moto: `complete` gets each new object, and the arguments that it was made with."""
    original = kind.__init__

    def make(self: Any, *given: Any, **named: Any) -> None:
        original(self, *given, **named)
        complete(self, *given, **named)

    kind.__init__ = make


def own_table(backend: Any, name: str) -> dict[str, Any]:
    """Our own table in a moto backend. It is saved and restored together with the backend."""
    table: dict[str, Any] = backend.__dict__.setdefault(f"trainyard_{name}", {})
    return table


def shown_with_tags(backend: Any, row: Mapping[str, Any], identifier: str) -> dict[str, Any]:
    """A row of ours with the tags that moto keeps for it."""
    tags = backend.describe_tags(filters={"resource-id": [identifier]})
    return {**row, "Tags": [{"Key": tag["key"], "Value": tag["value"]} for tag in tags]}


class Operations:
    """Base of our operations, which have the names of moto's methods. `with_ours` mixes them in before moto's response
    class. So they override its methods, and `self` is also a handler of moto."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def _tag_as_asked(self, kind: str, identifier: str) -> None:
        """Gives a new resource of ours the tags of the call."""
        if tags := self._parse_tag_specification().get(kind):
            self.ec2_backend.create_tags([identifier], tags)

    def _by_moto(self, operation: str, *given: Any) -> Any:
        """Calls moto's own implementation of an operation."""
        return getattr(super(), operation)(*given)


def apply_filters(
    rows: list[dict[str, Any]], wanted: Mapping[str, Any], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Applies the filters of a call to rows of ours. `names`: filter -> the field that it compares. Refuses a filter
    without a field, because ignoring it would give a wrong answer."""
    for name in wanted:
        if not (name.startswith("tag:") or name == "tag-key" or name in names):
            raise NotImplementedError(f"The filter '{name}' for it")
    return [
        row for row in rows if all(set(values) & _filter_values(row, name, names) for name, values in wanted.items())
    ]


def _filter_values(row: Mapping[str, Any], name: str, names: Mapping[str, str]) -> set[str]:
    tags = {tag["Key"]: tag["Value"] for tag in row.get("Tags", [])}
    if name == "tag-key":
        return set(tags)
    key = name.removeprefix("tag:")
    if key != name:
        return {tags[key]} if key in tags else set()
    return {str(row.get(names[name], ""))}


def action_result(result: object) -> Any:
    """An operation's answer: members of its model in botocore, or an object that has them as attributes."""
    from moto.core.responses import ActionResult

    return ActionResult(result)


def utc_now() -> datetime:
    """The time without its zone, as moto has it."""
    return datetime.now(UTC).replace(tzinfo=None)
