# SPDX-License-Identifier: Apache-2.0
"""The local environments: what each can run (catalog/environments.toml) and how it is made (rows.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from catalog.environments import environment_facts

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class EnvironmentRow:
    """An environment: how to make it, and what it can run. `base`: another row, or the path of an interpreter.

    `repair`: a module of `repairs/`. A package of the environment calls its `apply` by the entry point `repair_point`.
    """

    name: str
    summary: str
    kind: Literal["this", "venv", "debian"]
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
    repair_point: str = ""
    suite: str = ""
    unpacked: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    libraries: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    build: Mapping[str, str] = field(default_factory=dict)
    provides: Mapping[str, str] = field(default_factory=dict)

    @property
    def repairs(self) -> tuple[Path, ...]:
        """The file of the repair, if there is one."""
        return (HERE / "repairs" / f"{self.repair}.py",) if self.repair else ()

    def library_folder(self, folder: Path) -> Path:
        """The folder with its `libraries`, below the folder of the environment."""
        return folder / "lib" / "shared"

    def library_path(self, folder: Path) -> dict[str, str]:
        """The variable by which its processes find its `libraries`."""
        return {"LD_LIBRARY_PATH": str(self.library_folder(folder))} if self.libraries else {}

    @property
    def lists(self) -> tuple[Path, ...]:
        """The requirement files, which are locked with hashes."""
        names = (*self.requirements, *((self.built,) if self.built else ()))
        return tuple(HERE / "requirements" / name for name in names)


@cache
def environment_rows() -> Mapping[str, EnvironmentRow]:
    with (HERE / "rows.toml").open("rb") as file:
        recipes = tomllib.load(file)
    rows = {}
    for name, facts in environment_facts().items():
        columns = recipes[name]
        for key in ("imports", "requirements", "unpacked", "assumed"):
            columns[key] = tuple(columns.get(key, ()))
        rows[name] = EnvironmentRow(
            name=facts.name, serves=facts.serves, offers=facts.offers, provides=facts.provides, **columns
        )
    return rows
