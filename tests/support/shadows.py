# SPDX-License-Identifier: Apache-2.0
"""What a team may have beside its script: modules by the names of our program and of Python's own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

# What a program prints, and only with code 0, that runs in place of ours.
PLANTED = "the team's own module ran"
_NAMES = ("launcher", "json", "logging", "socket", "struct", "tarfile", "usercustomize")
_CONTENT = f"import sys\nprint({PLANTED!r}, flush=True)\nsys.exit(0)\n"


def write_shadows(code: Path, library: Path, without: Collection[str] = ()) -> Mapping[str, str]:
    """Modules in the folder of the code, and packages in a library. Returns the variables that lead to the library.
    `without`: what training itself has to find elsewhere."""
    for name in (one for one in _NAMES if one not in without):
        code.mkdir(parents=True, exist_ok=True)
        (code / f"{name}.py").write_text(_CONTENT)
        package = library / name
        package.mkdir(parents=True)
        for file in ("__init__.py", "__main__.py"):
            (package / file).write_text(_CONTENT)
    return {"PYTHONPATH": str(library)}
