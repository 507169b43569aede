# SPDX-License-Identifier: Apache-2.0
"""How a small process of the hosts is started: the standard library and its own modules, nothing else, and fast."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PROJECT = str(Path(__file__).resolve().parents[2])
_START = (
    "import sys; from importlib import import_module; sys.path.insert(0, sys.argv[1]);"
    " sys.exit(import_module(sys.argv[2]).main(sys.argv[3:]))"
)


def command(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _START, _PROJECT, module, *arguments]


def environment() -> dict[str, str]:
    """Nothing of the cloud's own, which may hold what its user keeps there, but what an interpreter needs to start."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PATH") if name in os.environ}
