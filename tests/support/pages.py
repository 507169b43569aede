# SPDX-License-Identifier: Apache-2.0
"""Runs the code blocks of documentation pages in order, for a user with an empty home and no local cloud."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localcloud import control

PROJECT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_NAME = re.compile(r"(?:#|//) ([\w./-]+)\n")


@dataclass(frozen=True)
class Block:
    language: str
    text: str


def read_sections(page: Path) -> dict[str, list[Block]]:
    parts = re.split(r"^## (.+)\n", page.read_text(), flags=re.MULTILINE)
    return {
        name: [Block(*found) for found in _BLOCK.findall(text)]
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def as_shell(block: Block) -> str:
    """The shell commands for a block: it is typed, run by Python, or saved in the file that its first line names."""
    if block.language == "sh":
        return block.text
    if block.language == "python":
        return f"python - <<'END OF BLOCK'\n{block.text}END OF BLOCK\n"
    name = _FILE_NAME.match(block.text)
    assert name, f"a {block.language} block that begins with no file name"
    return f"cat >{shlex.quote(name[1])} <<'END OF BLOCK'\n{block.text}END OF BLOCK\n"


@contextmanager
def a_desk(folder: Path, *tools: Path) -> Iterator[dict[str, str]]:
    """The environment of a user with `tools` and `trainyard`, an empty home, and no local cloud."""
    home, commands = folder / "home", folder / "commands"
    (folder / "work").mkdir()
    for made in (home, commands):
        made.mkdir()
    trainyard = commands / "trainyard"
    trainyard.write_text(f'#!/bin/sh\nPYTHONPATH={PROJECT} exec {sys.executable} -P -m trainyard "$@"\n')
    trainyard.chmod(0o755)
    path = os.pathsep.join([str(commands), *map(str, tools), os.environ.get("PATH", os.defpath)])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OCI_", "TF_VAR_"))}
    try:
        yield {**kept, "PATH": path, "HOME": str(home), "TRAINYARD_HOME": str(folder / "trainyard")}
    finally:
        control.stop_cloud(folder / "trainyard" / "cloud")


def run_typed(text: str, env: dict[str, str], folder: Path) -> str:
    script = f"set -euo pipefail\n{text}"
    told = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=1800, check=False
    )
    assert told.returncode == 0, f"{told.stdout[-3000:]}\n{told.stderr[-3000:]}"
    return told.stdout
