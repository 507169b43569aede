# SPDX-License-Identifier: Apache-2.0
"""The frameworks: one TOML file each, read into frozen rows. A team's own framework is a file of the same columns."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class RoleRow:
    """`mode` is what ADS images call the role; `start` is run by the launcher beside the command.

    A `service` runs until the other roles have ended, which then is its success. `awaits` names ports (by label) of
    other nodes that must answer before the command starts.
    """

    minimum: int
    mode: str
    why: str
    maximum: int | None = None
    start: tuple[str, ...] = ()
    runs_command: bool = False
    service: bool = False
    awaits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PortRow:
    """`per_node` names the option that says how many ports of a range each node takes."""

    label: str
    listens: tuple[str, ...]
    reached_from: tuple[str, ...]
    default: int | str
    why: str
    evidence: Literal["measured", "documented", "inferred"] = "documented"
    documented: bool = False
    when: str | None = None
    per_node: str | None = None
    minimum_size: int = 1
    pinned: Literal["start-option", "kernel-range"] = "start-option"


@dataclass(frozen=True, slots=True)
class OptionRow:
    type: Literal["boolean", "integer", "number", "string"]
    default: bool | int | float | str
    meaning: str
    minimum: float | None = None
    maximum: float | None = None
    values: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StartOption:
    """Arguments added to a role's start, depending on an option."""

    role: str
    when: str
    then: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wrap:
    """Words before a node's command while an option is on; they start the processes themselves, so it runs once."""

    when: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AdsRow:
    """What ADS-built images of this framework are told by environment."""

    cluster: str
    start_arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Framework:
    """`processes` names the option that says how many processes a node runs. In a `gang` nobody goes on without all."""

    name: str
    summary: str
    rank: str
    roles: Mapping[str, RoleRow]
    ports: tuple[PortRow, ...]
    options: Mapping[str, OptionRow]
    environment: Mapping[str, str]
    start_options: tuple[StartOption, ...]
    reserved: tuple[str, ...]
    strategy: str | None
    strategies: tuple[str, ...]
    ads: AdsRow | None
    processes: str | None = None
    gang: bool = False
    wraps: tuple[Wrap, ...] = ()

    def port(self, label: str) -> PortRow | None:
        return next((row for row in self.ports if row.label == label), None)

    @property
    def main_role(self) -> str:
        """The role whose first node is rank 0."""
        return next(iter(self.roles))


class FrameworkError(ValueError):
    """A framework file says something this reader does not know."""


def names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in HERE.glob("*.toml")))


@cache
def document(name: str) -> Mapping[str, Any]:
    return tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))


@cache
def framework(name: str, strategy: str | None = None) -> Framework:
    """The row of a known framework; without a strategy, its default one."""
    return parse(document(name), strategy)


def parse(data: Mapping[str, Any], strategy: str | None = None) -> Framework:
    """A framework from a file's columns. A strategy adds roles, ports and options to those all strategies share."""
    strategies: Mapping[str, Any] = data.get("strategies", {})
    chosen = strategy or data.get("default_strategy")
    extra: Mapping[str, Any] = strategies.get(chosen, {}) if chosen else {}
    roles = {**data.get("roles", {}), **extra.get("roles", {})}
    options = {**data.get("options", {}), **extra.get("options", {})}
    ads = data.get("ads")
    for column in ("name", "summary", "rank"):
        if not isinstance(data.get(column), str):
            raise FrameworkError(f"`{column}` must be a text")
    return Framework(
        name=data["name"],
        summary=extra.get("summary", data["summary"]),
        rank=data["rank"],
        roles={name: _row(RoleRow, value, f"roles.{name}") for name, value in roles.items()},
        ports=tuple(_row(PortRow, value, "ports") for value in (*data.get("ports", ()), *extra.get("ports", ()))),
        options={name: _row(OptionRow, value, f"options.{name}") for name, value in options.items()},
        environment={**data.get("environment", {}), **extra.get("environment", {})},
        start_options=tuple(_row(StartOption, value, "start_options") for value in data.get("start_options", ())),
        reserved=tuple(data.get("reserved", ())),
        strategy=chosen,
        strategies=tuple(strategies),
        ads=_row(AdsRow, ads, "ads") if ads else None,
        processes=data.get("processes"),
        gang=bool(extra.get("gang", data.get("gang", False))),
        wraps=tuple(_row(Wrap, value, "wraps") for value in data.get("wraps", ())),
    )


def _row(kind: type[Any], value: Any, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise FrameworkError(f"`{where}` must be a table")
    known = {column.name for column in fields(kind)}
    unknown = sorted(set(value) - known)
    if unknown:
        raise FrameworkError(f"`{where}` has no column `{unknown[0]}`; it has {', '.join(sorted(known))}")
    try:
        return kind(**{key: tuple(item) if isinstance(item, list) else item for key, item in value.items()})
    except TypeError as missing:
        raise FrameworkError(f"`{where}`: {str(missing).split('() ')[-1]}") from None
