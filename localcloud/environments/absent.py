# SPDX-License-Identifier: Apache-2.0
"""Finds modules that a team's code imports and that are missing. A script may do without some, but train
differently."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from catalog.imports import imported_modules
from localcloud.environments.find import Environment

# Looks for the modules only: none of them is imported.
_LOOK = (
    "import importlib.util, json, sys; print(json.dumps([n for n in sys.argv[1:] if not importlib.util.find_spec(n)]))"
)
_LONGEST_SECONDS = 60


def absent_modules(environment: Environment, code: Path) -> tuple[str, ...]:
    """The top-level modules that a folder of scripts imports and that neither it nor the environment has."""
    own = {path.stem for path in code.iterdir()} | set(sys.stdlib_module_names)
    wanted = sorted(imported_modules(code) - own)
    if not wanted:
        return ()
    words = [str(environment.interpreter), "-I", "-c", _LOOK, *wanted]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_LONGEST_SECONDS, check=False)
    return tuple(json.loads(done.stdout)) if done.returncode == 0 else ()
