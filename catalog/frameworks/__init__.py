# SPDX-License-Identifier: Apache-2.0
"""The frameworks: one TOML file each, read into frozen rows. A team's own framework is a file of the same columns."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from catalog.frameworks.columns import FrameworkError, extend_columns, read_columns
from catalog.frameworks.validation import require_valid

__all__ = ["FrameworkError"]
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class RoleRow:
    """ADS images call the role `mode`. The launcher runs `start` in addition to the command.

    A `service` runs until the other roles have ended, and then counts as successful. Before the command starts, the
    ports in `awaits` must answer on the first node that listens, and those in `awaits_every` on each node.
    `awaits_command` must then succeed on the node itself. A role with `carries = false` only watches training: a
    rehearsal does not expect traffic from it.
    """

    minimum: int
    mode: Literal["MAIN", "WORKER", "PS"]
    why: str
    maximum: int | None = None
    start: tuple[str, ...] = ()
    runs_command: bool = False
    service: bool = False
    awaits: tuple[str, ...] = ()
    awaits_every: tuple[str, ...] = ()
    awaits_command: tuple[str, ...] = ()
    carries: bool = True


@dataclass(frozen=True, slots=True)
class PortRow:
    """`per_node` names the option that says how many ports of a range each node takes."""

    label: str
    listens: tuple[str, ...]
    reached_from: tuple[str, ...]
    default: int | str
    why: str
    protocol: Literal["tcp", "udp"] = "tcp"
    evidence: Literal["measured", "documented", "inferred"] = "documented"
    documented: bool = False
    when: str | None = None
    per_node: str | None = None
    minimum_size: int = 1
    pinned: Literal["start-option", "kernel-range"] = "start-option"


@dataclass(frozen=True, slots=True)
class OptionRow:
    """`several_need`: the option that must be on if this one is more than 1. `imports`: modules of a script that need
    this option to be on."""

    type: Literal["boolean", "integer", "number", "string"]
    default: bool | int | float | str
    meaning: str
    minimum: float | None = None
    maximum: float | None = None
    values: tuple[str, ...] = ()
    several_need: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    imports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StartOption:
    """Arguments added to a role's start, depending on an option."""

    role: str
    when: str
    then: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wrap:
    """Words before a node's command: always, or if an option is on. They start the processes, so the command runs
    once."""

    words: tuple[str, ...]
    when: str | None = None


@dataclass(frozen=True, slots=True)
class AdsRow:
    """The environment variables for images of this framework that were built with ADS."""

    cluster: str
    start_arguments: tuple[str, ...] = ()
    start_options: tuple[StartOption, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Strategy:
    """The columns that a strategy adds to the shared ones."""

    summary: str | None = None
    gang: bool | None = None
    roles: Mapping[str, RoleRow] = field(default_factory=dict)
    ports: tuple[PortRow, ...] = ()
    options: Mapping[str, OptionRow] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    ads: AdsRow | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A framework's file, column by column (docs/frameworks.md). `extends` is already resolved."""

    name: str
    summary: str
    rank: str
    roles: Mapping[str, RoleRow]
    default_strategy: str | None = None
    strategies: Mapping[str, Strategy] = field(default_factory=dict)
    ports: tuple[PortRow, ...] = ()
    options: Mapping[str, OptionRow] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    start_options: tuple[StartOption, ...] = ()
    reserved: tuple[str, ...] = ()
    ads: AdsRow | None = None
    processes: str | None = None
    gang: bool = False
    wraps: tuple[Wrap, ...] = ()
    stands_for: tuple[str, ...] = ()
    extends: str | None = None


@dataclass(frozen=True, slots=True)
class Framework:
    """`processes`: the option for the number of processes on a node. In a `gang`, no node continues alone.

    `stands_for`: other launchers of this framework, which ours replaces.
    """

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
    stands_for: tuple[str, ...] = ()

    def port(self, label: str) -> PortRow | None:
        return next((row for row in self.ports if row.label == label), None)


def framework_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in HERE.glob("*.toml")))


@cache
def framework_document(name: str) -> Mapping[str, Any]:
    return with_extended_columns(tomllib.loads((HERE / f"{name}.toml").read_text("utf-8")))


def with_extended_columns(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns of a file together with those of the built-in framework that it extends."""
    name = data.get("extends")
    if name is None:
        return data
    if name not in framework_names():
        raise FrameworkError(f"`extends` must be one of {', '.join(framework_names())}")
    return extend_columns(framework_document(name), data)


@cache
def framework_row(name: str, strategy: str | None = None) -> Framework:
    """The row of a known framework; without a strategy, its default one."""
    return parse_framework(framework_document(name), strategy)


def parse_framework(data: Mapping[str, Any], strategy: str | None = None) -> Framework:
    """A framework from a file's columns. A strategy adds roles, ports and options to the shared ones."""
    columns = read_columns(Document, with_extended_columns(data))
    chosen = strategy or columns.default_strategy
    if chosen is not None and chosen not in columns.strategies:
        raise FrameworkError(f"has no strategy `{chosen}`")
    extra = columns.strategies[chosen] if chosen else Strategy()
    row = Framework(
        name=columns.name,
        summary=extra.summary or columns.summary,
        rank=columns.rank,
        roles={**columns.roles, **extra.roles},
        ports=(*columns.ports, *extra.ports),
        options={**columns.options, **extra.options},
        environment={**columns.environment, **extra.environment},
        start_options=columns.start_options,
        reserved=columns.reserved,
        strategy=chosen,
        strategies=tuple(columns.strategies),
        ads=extra.ads or columns.ads,
        processes=columns.processes,
        gang=columns.gang if extra.gang is None else extra.gang,
        wraps=columns.wraps,
        stands_for=columns.stands_for,
    )
    require_valid(row)
    return row
