# SPDX-License-Identifier: Apache-2.0
"""The rows of rows.toml, and which of them a job can run in."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class EnvironmentRow:
    """One environment: how to make it, and what it can run. `base` is another row, or the path of an interpreter.

    `repair` is a module of `repairs/` that every process of the environment imports first."""

    name: str
    summary: str
    kind: Literal["this", "venv"]
    serves: tuple[str, ...]
    offers: frozenset[str]
    imports: tuple[str, ...]
    megabytes: int
    minutes: int
    own: bool = False
    python: str = ""
    base: str = ""
    proof: str = ""
    requirements: tuple[str, ...] = ()
    built: str = ""
    repair: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    build: Mapping[str, str] = field(default_factory=dict)

    @property
    def repairs(self) -> tuple[Path, ...]:
        """The file of the repair, if there is one."""
        return (HERE / "repairs" / f"{self.repair}.py",) if self.repair else ()

    @property
    def lists(self) -> tuple[Path, ...]:
        """The requirement files, which are locked with hashes."""
        names = (*self.requirements, *((self.built,) if self.built else ()))
        return tuple(HERE / "requirements" / name for name in names)


@cache
def rows() -> Mapping[str, EnvironmentRow]:
    with (HERE / "rows.toml").open("rb") as file:
        return {name: _row(name, columns) for name, columns in tomllib.load(file).items()}


def _row(name: str, columns: dict[str, Any]) -> EnvironmentRow:
    listed: dict[str, Any] = {key: tuple(columns.pop(key, ())) for key in ("serves", "imports", "requirements")}
    return EnvironmentRow(name=name, offers=frozenset(columns.pop("offers")), **listed, **columns)


def rows_for(
    framework: str, strategy: str | None, modules: Set[str], team_own: bool, lenient: bool = False
) -> tuple[EnvironmentRow, ...]:
    """The rows that can run a job, best first. `modules` are the imports of its code. A team's own framework fits any
    row with these modules. Where the job brings packages of its own, a row may lack some (`lenient`)."""
    offered = frozenset().union(*(row.offers for row in rows().values()))
    needed = modules & offered
    served = [row for row in rows().values() if team_own or {framework, f"{framework}/{strategy}"} & set(row.serves)]
    if lenient:
        return tuple(sorted(served, key=lambda row: -len(needed & row.offers)))
    return tuple(row for row in served if needed <= row.offers)
