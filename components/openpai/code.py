# SPDX-License-Identifier: Apache-2.0
"""How a job's code comes to its tasks: inside the command, or cloned by it."""

from __future__ import annotations

import base64
import bz2
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

from components.archives import folder_entries
from components.openpai.shell import quoted
from schemas.model import Git

# Times and owners differ between checkouts.
_TIME = 315532800
PARAMETER = "trainyard_code"
_END = "TRAINYARD_CODE"
# Python unpacks: images for training have it, and not all have bzip2.
_UNPACK = (
    "import base64, io, sys, tarfile; "
    'tarfile.open(fileobj=io.BytesIO(base64.b64decode(sys.stdin.read())), mode="r:bz2").extractall(sys.argv[1])'
)


def packed(folder: Path) -> str:
    """The folder as text. bzip2 makes the same bytes everywhere, which zlib does not."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in folder_entries(folder):
            data = path.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), _TIME
            entry.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return base64.b64encode(bz2.compress(content.getvalue())).decode()


def unpack() -> Iterator[str]:
    """Puts the packed code into a new folder and goes there. All roles have it from one parameter of the job."""
    yield 'trainyard_code="$(mktemp -d)"'
    # Isolated: Python's own modules, not those of the image's folder or of the job's PYTHONPATH. Python 3.12 and
    # 3.13 warn that 3.14 unpacks with more care, which is no news for who reads the log of a training.
    unpacks = f'"$trainyard_python" -I -W ignore -c \'{_UNPACK}\' "$trainyard_code"'
    yield f"{unpacks} <<'{_END}'\n<% $parameters.{PARAMETER} %>\n{_END}"
    yield 'cd "$trainyard_code"'


def clone(git: Git) -> Iterator[str]:
    """The launcher clones itself; this is for commands without it."""
    branch = f"--branch {quoted(git.branch)} " if git.branch else ""
    yield 'trainyard_code="$(mktemp -d)"'
    yield f'git clone --quiet {branch}-- {quoted(git.url)} "$trainyard_code"'
    yield 'cd "$trainyard_code"'
    if git.commit:
        yield f"git checkout --quiet {quoted(git.commit)}"
