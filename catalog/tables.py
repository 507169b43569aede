# SPDX-License-Identifier: Apache-2.0
"""Reads the catalog. Facts are rows in TOML files, and code reads them by name."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


@cache
def table(name: str) -> Mapping[str, Any]:
    """The rows of `catalog/<name>.toml`. A process reads them once. Callers share them and must not change them."""
    with (_FOLDER / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)
