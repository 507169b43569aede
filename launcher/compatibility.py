# SPDX-License-Identifier: Apache-2.0
"""What Pythons before 3.9 lack. Older machines and images have 3.7 and 3.8.

`vermin` holds the rest of the launcher to Python 3.7 (`make check`).
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Protocol  # novm
else:
    # Only type checkers need the real class.
    Protocol = object

# FIPS systems forbid MD5 for security. As a checksum it is allowed if the call says so.
_MD5: dict[str, Any] = {"usedforsecurity": False} if sys.version_info >= (3, 9) else {}

__all__ = ["Protocol", "md5_hash", "shell_words", "unlink_if_there"]


def md5_hash() -> Any:
    return hashlib.md5(**_MD5)


def shell_words(words: Sequence[str]) -> str:
    """Joins arguments, quoted for a shell."""
    return " ".join(map(shlex.quote, words))


def unlink_if_there(file: Path) -> None:
    """Removes a file, which need not exist."""
    with suppress(FileNotFoundError):
        file.unlink()
