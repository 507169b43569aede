# SPDX-License-Identifier: Apache-2.0
"""What a job's image is built from: rows of launcher/images/images.toml, and the folder a builder is given."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.packages import other_names

PROJECT = Path(__file__).resolve().parents[2]
IMAGES = Path("launcher", "images")
OWN = "own"
# Locks name wheels for one kind of processor.
PLATFORM = "linux/amd64"
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".git", ".venv", ".mypy_cache", ".pytest_cache")
_TEAM = "team"
_ARGUMENT = re.compile(r"^ARG (\w+)", re.MULTILINE)
_PROXIES = ("ALL_PROXY", "FTP_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class Recipe:
    """A Dockerfile and its arguments."""

    title: str
    dockerfile: Path
    arguments: Mapping[str, str]

    @property
    def declared(self) -> list[str]:
        """The arguments its Dockerfile asks for, and those that every builder passes on."""
        text = (PROJECT / self.dockerfile).read_text("utf-8")
        return sorted({*_ARGUMENT.findall(text), *_PROXIES})


@dataclass(frozen=True)
class Additions:
    """What a team puts into its image beside the framework. `packages`: those that jobs ask for by `requirements`."""

    requirements: Path | None = None
    code: Path | None = None
    packages: str = ""

    @property
    def arguments(self) -> Mapping[str, str]:
        """Where a Dockerfile finds them in its context."""
        return {} if self == Additions() else {"TEAM": _TEAM}


def recipe(framework: str, strategy: str | None, gpu: bool) -> Recipe:
    """The recipe of a framework; one of a team's own gets the base alone."""
    rows = _rows()
    title = framework if framework in rows and framework != OWN else OWN
    row = rows[title]
    if "dockerfile" not in row:
        title = f"{title} with {strategy}"
        row = row[strategy]
    kind = "gpu" if gpu else "cpu"
    arguments: Mapping[str, str] = {**row.get("always", {}), **row.get(kind, {})}
    return Recipe(f"{title}, {kind}", IMAGES / row["dockerfile"] / "Dockerfile", arguments)


def make_context(folder: Path, additions: Additions) -> None:
    """Fills the folder that a builder copies from."""
    shutil.copytree(PROJECT / "launcher", folder / "launcher", ignore=_LEFT_OUT)
    if not additions.arguments:
        return
    nothing = PROJECT / IMAGES / "nothing"
    (folder / _TEAM).mkdir()
    listed = folder / _TEAM / "requirements.txt"
    if additions.packages:
        listed.write_bytes(additions.packages.encode())
    else:
        shutil.copyfile(additions.requirements or nothing / "requirements.txt", listed)
    (folder / _TEAM / "known_as.txt").write_text(_other_names(), "utf-8")
    shutil.copytree(additions.code or nothing / "code", folder / _TEAM / "code", ignore=_LEFT_OUT)


def _other_names() -> str:
    """A line for each package that requirements also ask for by other names, with these."""
    return "".join(f"{' '.join((name, *others))}\n" for name, others in other_names().items())


def _rows() -> Mapping[str, Any]:
    with (PROJECT / IMAGES / "images.toml").open("rb") as file:
        return tomllib.load(file)
