# SPDX-License-Identifier: Apache-2.0
"""The one list of platforms where training can run: the rows of platforms.toml, by name; and the one way to what a
platform's home provides, its capabilities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Literal, TypeVar

from catalog.tables import table

# The key of a stack file that names its platform.
PLATFORM_KEY = "trainyard:platform"
# Our own provider of Pulumi, whose resources every platform has.
OWN_PROVIDER = "trainyard"
# What a run expects is sent with every start, so it has to fit into what each platform takes.
LONGEST_EXPECTS = 16 * 1024


@dataclass(frozen=True, slots=True)
class Region:
    """The key of a stack file for the region, and an example of one. `names` and `realms`: where their rows are."""

    key: str
    example: str
    names: str = ""
    realms: str = ""


@dataclass(frozen=True, slots=True)
class PlatformRow:
    """A row. platforms.toml explains the columns."""

    summary: str
    deploys: bool
    home: str
    also: tuple[str, ...] = ()
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
    maximum_runtime: Literal["run", "start"] = "run"
    lacks: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)


@cache
def platforms() -> Mapping[str, PlatformRow]:
    """Every platform, in the order of the file."""
    rows = {}
    for name, columns in table("platforms").items():
        region, trains = columns.get("region"), columns.get("trains")
        typed = {"region": region and Region(**region), "trains": trains if trains is None else tuple(trains)}
        typed["also"] = tuple(columns.get("also", ()))
        rows[name] = PlatformRow(**{"home": name, **columns, **typed})
    return rows


def platform_spellings() -> Mapping[str, str]:
    """Every word by which a stack file may name a platform, and the platform's name inside."""
    return {word: name for name, row in platforms().items() for word in (name, *row.also)}


def platform_word(name: str) -> str:
    """A platform's name for people: the first of its other spellings, if it has one."""
    row = platforms().get(name)
    return row.also[0] if row and row.also else name


def default_platform() -> str:
    """The platform of a stack file that names none: the first row."""
    return next(iter(platforms()))


def platform_in(config: Mapping[str, Any]) -> str:
    """The platform that a stack file's configuration names, by its name inside. A word that no platform has stays as it
    was written."""
    written = str(config.get(PLATFORM_KEY) or default_platform())
    return platform_spellings().get(written, written)


def platform_with(outputs: Iterable[str]) -> str | None:
    """The platform on which a stack with these outputs is up."""
    there = set(outputs)
    return next((name for name, row in platforms().items() if row.output in there), None)


def platform_folder(name: str) -> str:
    """The folder of a platform in `components`, whose name Python can import."""
    return platforms()[name].home


class Capability:
    """Something that a platform can do for its callers. Each kind is a class of the callers' layer; the platform's home
    has an instance of it, in a module that is imported on first use.

    `place`: the module and the name of the instance in a home. A home without this module lacks the capability.
    `lacking`: the reason, for the users of such a platform. `error`: what a caller gets who cannot do without.
    """

    place: ClassVar[str]
    lacking: ClassVar[str] = "{platform} cannot do this yet"
    error: ClassVar[type[Exception]] = LookupError


C = TypeVar("C", bound=Capability)


@dataclass(frozen=True, slots=True)
class Lacks:
    """In place of a capability that a platform does not have: the reason."""

    reason: str


def find_capability(platform: str, kind: type[C]) -> C | Lacks:
    """What the platform has of this kind. A name that no platform has lacks everything, since a stack file may have
    errors."""
    module, _, name = kind.place.rpartition(".")
    path = f"components.{platform_folder(platform)}.{module}" if platform in platforms() else ""
    if not path or not _is_module(path):
        return Lacks(kind.lacking.format(platform=platform))
    found = getattr(import_module(path), name)
    if not isinstance(found, kind):
        raise TypeError(f"{path}.{name} is not of the kind {kind.__qualname__}")
    return found


def require_capability(platform: str, kind: type[C]) -> C:
    """The same for callers who cannot do without. Raises the error of this kind."""
    found = find_capability(platform, kind)
    if isinstance(found, Lacks):
        raise kind.error(found.reason)
    return found


def platforms_with(kind: type[Capability]) -> tuple[str, ...]:
    """The platforms that have a capability of this kind. Imports none of their modules."""
    module = kind.place.rpartition(".")[0]
    return tuple(name for name in platforms() if _is_module(f"components.{platform_folder(name)}.{module}"))


def _is_module(path: str) -> bool:
    with suppress(ModuleNotFoundError):  # of a folder around it
        return find_spec(path) is not None
    return False
