# SPDX-License-Identifier: Apache-2.0
"""The platforms where training can run: the rows of platforms.toml, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
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


def platform_with(outputs: Iterable[str]) -> str | None:
    """The platform on which a stack with these outputs is up."""
    there = set(outputs)
    return next((name for name, row in platforms().items() if row.get("output") in there), None)


def platform_folder(name: str) -> str:
    """The folder of a platform in `components`, whose name Python can import."""
    return str(platforms()[name].get("home", name))


def import_platform(platform: str) -> Any:
    """The object `PLATFORM` of a platform. Each caller gives it the type of its own layer. It is imported on first
    use."""
    return import_module(f"components.{platform_folder(platform)}.platform").PLATFORM
