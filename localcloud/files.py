# SPDX-License-Identifier: Apache-2.0
"""Files that hold secrets."""

from __future__ import annotations

import os
from pathlib import Path


def write_secret(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Writes the file atomically. By default only its owner can read it."""
    draft = path.with_suffix(f".{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
    draft.replace(path)
