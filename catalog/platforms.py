# SPDX-License-Identifier: Apache-2.0
"""Where training can run: the rows of platforms.toml, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.tables import table


def platforms() -> Mapping[str, Mapping[str, Any]]:
    """Every platform, in the order of the file."""
    return table("platforms")


def default_platform() -> str:
    """The platform of a stack file that names none: the first row."""
    return next(iter(platforms()))


def platform_folder(name: str) -> str:
    """What a platform's folder is called in each room that has one: a name that Python can import."""
    return name.replace("-", "_")
