# SPDX-License-Identifier: Apache-2.0
"""Code that travels as text inside of a job's own document, for platforms without a place to upload it to."""

from __future__ import annotations

import base64
import bz2
import io
import os
import tarfile
from pathlib import Path

from schemas.job_code import folder_entries

# Times and owners differ between checkouts.
_TIME = 315532800
# A program for Python that reads the text, and unpacks it into the folder of its argument: all images for training have
# Python, but not all have bzip2. It contains no single quote.
UNPACKING_PROGRAM = (
    "import base64, io, sys, tarfile; "
    'tarfile.open(fileobj=io.BytesIO(base64.b64decode(sys.stdin.read())), mode="r:bz2").extractall(sys.argv[1])'
)


def pack_folder(folder: Path) -> str:
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
