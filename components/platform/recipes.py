# SPDX-License-Identifier: Apache-2.0
"""The recipe of a job's image: rows of launcher/images/images.toml, and the build context."""

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
# Lock files name wheels for one processor architecture.
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
        """The arguments that its Dockerfile declares, and those that every builder accepts."""
        text = (PROJECT / self.dockerfile).read_text("utf-8")
        return sorted({*_ARGUMENT.findall(text), *_PROXIES})


@dataclass(frozen=True)
class Additions:
    """What a team adds to the framework in its image. `packages`: from the jobs' `requirements`."""

    requirements: Path | None = None
    code: Path | None = None
    packages: str = ""

    @property
    def arguments(self) -> Mapping[str, str]:
        """The build arguments that say where they are in the build context."""
        return {} if self == Additions() else {"TEAM": _TEAM}


def recipe(framework: str, strategy: str | None, gpu: bool) -> Recipe:
    """The recipe of a framework. A team's own framework gets the base image's recipe."""
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
    """Fills the build context."""
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
    """A line for each package that has other names in requirements, with these names."""
    return "".join(f"{' '.join((name, *others))}\n" for name, others in other_names().items())


def _rows() -> Mapping[str, Any]:
    with (PROJECT / IMAGES / "images.toml").open("rb") as file:
        return tomllib.load(file)
