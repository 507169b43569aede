# SPDX-License-Identifier: Apache-2.0
"""Reads the catalog. Facts are rows in TOML files, and code reads them by name."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


def rows_at(place: str) -> Mapping[str, Any]:
    """The rows at a place that another row names: a file and a table in it (`regions.keys`), or a whole file. Empty for
    an empty place."""
    file, _, part = place.partition(".")
    rows = table(file) if file else {}
    return rows[part] if part else rows


@cache
def table(name: str) -> Mapping[str, Any]:
    """The rows of `catalog/<name>.toml`. A process reads them once. Callers share them and must not change them."""
    with (_FOLDER / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)
