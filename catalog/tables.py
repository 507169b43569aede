# SPDX-License-Identifier: Apache-2.0
"""The one reader of the catalog: facts are rows in TOML files, code asks for them by name."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


@cache
def table(name: str) -> Mapping[str, Any]:
    """The rows of `catalog/<name>.toml`, read once a process; callers share them and do not change them."""
    with (_FOLDER / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)
