# SPDX-License-Identifier: Apache-2.0
"""Files with something secret in them."""

from __future__ import annotations

import os
from pathlib import Path


def write_secret(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Whole or not at all, and readable by its owner only, or by those whom its folder lets in."""
    draft = path.with_suffix(f".{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
    draft.replace(path)
