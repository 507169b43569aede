# SPDX-License-Identifier: Apache-2.0
"""Starts a small process of the hosts. It starts fast, because it imports only the standard library and its modules."""

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
    """The variables that an interpreter needs to start. The cloud's other variables may contain its user's secrets."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PATH") if name in os.environ}
