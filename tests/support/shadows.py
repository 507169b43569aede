# SPDX-License-Identifier: Apache-2.0
"""Modules of a team that have the names of our program's modules and of Python's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

# The output of such a module if it runs in place of ours. It exits with code 0.
PLANTED = "the team's own module ran"
_NAMES = ("launcher", "json", "logging", "socket", "struct", "tarfile", "usercustomize")
_CONTENT = f"import sys\nprint({PLANTED!r}, flush=True)\nsys.exit(0)\n"


def write_shadows(code: Path, library: Path, without: Collection[str] = ()) -> Mapping[str, str]:
    """Writes modules into the code folder, and packages into a library. Returns the variables that put the library on
    Python's path. `without`: names that are left out, because training needs the real modules."""
    for name in (one for one in _NAMES if one not in without):
        code.mkdir(parents=True, exist_ok=True)
        (code / f"{name}.py").write_text(_CONTENT)
        package = library / name
        package.mkdir(parents=True)
        for file in ("__init__.py", "__main__.py"):
            (package / file).write_text(_CONTENT)
    return {"PYTHONPATH": str(library)}
