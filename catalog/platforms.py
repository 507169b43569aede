# SPDX-License-Identifier: Apache-2.0
"""Where training can run: the rows of platforms.toml, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from catalog.tables import table

# The key of a stack file that names its platform.
PLATFORM_KEY = "trainyard:platform"


def platforms() -> Mapping[str, Mapping[str, Any]]:
    """Every platform, in the order of the file."""
    return table("platforms")


def default_platform() -> str:
    """The platform of a stack file that names none: the first row."""
    return next(iter(platforms()))


def platform_in(config: Mapping[str, Any]) -> str:
    """The platform that a stack file's configuration names, as it was written."""
    return str(config.get(PLATFORM_KEY) or default_platform())


def platform_folder(name: str) -> str:
    """What a platform's folder is called in each room that has one: a name that Python can import."""
    return name.replace("-", "_")


@cache
def platforms_in(room: str, module: str = "") -> tuple[str, ...]:
    """The platforms that have a folder in this room, and this module in it."""
    folders = {name: f"{room}.{platform_folder(name)}" for name in platforms()}
    return tuple(
        name
        for name, folder in folders.items()
        if find_spec(folder) and (not module or find_spec(f"{folder}.{module}"))
    )


def import_platform(room: str, platform: str, module: str = "") -> Any:
    """A platform's folder in a room, or a module of it. No room imports one before it is needed."""
    return import_module(".".join(filter(None, (room, platform_folder(platform), module))))
