# SPDX-License-Identifier: Apache-2.0
"""The one list of platforms where training can run: the rows of platforms.toml, by name; and the one way to the object
that represents a platform."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from catalog.tables import table

# The key of a stack file that names its platform.
PLATFORM_KEY = "trainyard:platform"
# Our own provider of Pulumi, whose resources every platform has.
OWN_PROVIDER = "trainyard"


P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Region:
    """The key of a stack file for the region, and an example of one."""

    key: str
    example: str


@dataclass(frozen=True, slots=True)
class PlatformRow:
    """A row. platforms.toml explains the columns."""

    summary: str
    deploys: bool
    home: str
    provider: str = ""
    region: Region | None = None
    # None: it can train all frameworks.
    trains: tuple[str, ...] | None = None
    why: str = ""
    requirements: str = "requirements.txt"
    output: str = ""
    place: str = ""
    stores: str = ""
    machines: str = ""
    run_logs: str = ""
    lacks: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)


@cache
def platforms() -> Mapping[str, PlatformRow]:
    """Every platform, in the order of the file."""
    return {name: _row(name, columns) for name, columns in table("platforms").items()}


def _row(name: str, columns: Mapping[str, Any]) -> PlatformRow:
    region, trains = columns.get("region"), columns.get("trains")
    typed = {"region": region and Region(**region), "trains": trains if trains is None else tuple(trains)}
    return PlatformRow(**{"home": name, **columns, **typed})


def default_platform() -> str:
    """The platform of a stack file that names none: the first row."""
    return next(iter(platforms()))


def platform_in(config: Mapping[str, Any]) -> str:
    """The platform that a stack file's configuration names, as it was written."""
    return str(config.get(PLATFORM_KEY) or default_platform())


def platform_with(outputs: Iterable[str]) -> str | None:
    """The platform on which a stack with these outputs is up."""
    there = set(outputs)
    return next((name for name, row in platforms().items() if row.output in there), None)


def platform_folder(name: str) -> str:
    """The folder of a platform in `components`, whose name Python can import."""
    return platforms()[name].home


def find_platform(name: str, part: type[P], unknown: Callable[[str], P] | None = None) -> P:
    """The object `PLATFORM` of a platform, which is imported on first use. `part`: what the caller needs of it, a class
    of the caller's layer. `unknown` makes it for a name that no platform has, since a stack file may have errors."""
    if unknown is not None and name not in platforms():
        return unknown(name)
    found = import_module(f"components.{platform_folder(name)}.platform").PLATFORM
    if not isinstance(found, part):
        raise TypeError(f"PLATFORM of {name} is not a {part.__qualname__}")
    return found
