# SPDX-License-Identifier: Apache-2.0
"""The calls that the local cloud's `aws` plugin makes, compared with those of the rows, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from components.aws.types import SERVED_TYPES
from components.aws.types.provider_calls import ProviderCalls, aws_function_calls, aws_type_calls
from localcloud import admin
from localcloud.control import Cloud
from tests.support.plugin_world import World

_PHASES = ("create", "refresh", "update", "delete", "invoke")


@dataclass
class Watched:
    """The engine's side of a plugin. It records the calls that the local AWS judges during each phase."""

    engine: Any
    cloud: Cloud
    phases: list[tuple[str, set[str]]] = field(default_factory=list)
    _last: int = 0

    def __post_init__(self) -> None:
        self._since()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.engine, name)
        if name not in _PHASES:
            return method

        def noted(*args: Any) -> Any:
            self._since()
            result = method(*args)
            self.phases.append((name, self._since()))
            return result

        return noted

    def _since(self) -> set[str]:
        rows = admin.list_calls(self.cloud, since=self._last, of="aws")
        self._last = max((row["id"] for row in rows), default=self._last)
        return {row["operation"] for row in rows}

    def calls(self, phase: str) -> set[str]:
        """The calls of this phase, when it ran for the first time."""
        return next(calls for name, calls in self.phases if name == phase)


def watched(world: World) -> World:
    return replace(world, engine=Watched(world.engine, world.cloud))  # type: ignore[arg-type]


def judge_life(token: str, inputs: Mapping[str, Any], change: Mapping[str, Any], seen: Watched) -> None:
    """Asserts that creating, reading, updating and deleting a resource made the row's calls, and no others."""
    row = aws_type_calls(token)
    create, read, delete = (named(row, row.phases[phase]) for phase in ("create", "read", "delete"))
    maybe = read | named(row, SERVED_TYPES[token].provider.stand_in.split(), *row.when.values())
    given, changed = for_inputs(row, inputs), for_inputs(row, {**inputs, **change})
    allowed = {"create": create | given, "refresh": given | changed, "update": changed, "delete": delete | changed}
    for phase, calls in seen.phases:
        if phase == "invoke":  # a function has a row of its own
            continue
        assert calls - allowed[phase] - maybe == set(), f"{phase}: more than the row has"
    for phase, needed in {"create": create | read, "refresh": read, "delete": delete}.items():
        assert needed - seen.calls(phase) == set(), f"{phase}: less than the row has"
    for name in change.keys() & row.with_input.keys():
        assert named(row, row.with_input[name]) & seen.calls("update"), f"no call gives {name} its value"


def judge_function(token: str, seen: Watched) -> None:
    row = aws_function_calls(token)
    # Everybody may make this call, so the local AWS does not judge it, and the record does not have it.
    assert seen.calls("invoke") == named(row, row.phases["read"]) - {"sts.GetCallerIdentity"}


def named(row: ProviderCalls, *lists: Any) -> set[str]:
    """Calls of a row, as the record names them."""
    return {f"{row.service}.{call}" for calls in lists for call in calls}


def for_inputs(row: ProviderCalls, inputs: Mapping[str, Any]) -> set[str]:
    """Calls that these inputs may lead to. The contents of a launch template count as inputs, too."""
    given = {*inputs, "data"}
    return named(row, *(calls for name, calls in row.with_input.items() if name in given))
