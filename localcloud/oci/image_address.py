# SPDX-License-Identifier: Apache-2.0
"""Parses addresses of images. No other module does, so that a push is judged and carried out for one repository."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_REPOSITORY = re.compile(r"[a-z0-9]+(?:[._/-][a-z0-9]+)*")
_ADDRESS = re.compile(r"([^/]+)/([^/]+)/([^:@]+?)(?::([\w.-]+))?(?:@(sha256:[0-9a-f]{64}))?")


@dataclass(frozen=True)
class ImageAddress:
    """A full address, such as `iad.ocir.io/namespace/team/name:tag`."""

    registry: str
    namespace: str
    repository: str
    tag: str
    digest: str


def parse_address(address: Any) -> ImageAddress | None:
    match = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    return ImageAddress(match[1], match[2], match[3], match[4] or "", match[5] or "") if match else None


def is_repository(name: str) -> bool:
    """Whether a repository may have this name."""
    return bool(_REPOSITORY.fullmatch(name))
