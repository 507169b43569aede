# SPDX-License-Identifier: Apache-2.0
"""What each platform provides for its stack files: a part of `components.platform.base.Platform`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schemas.findings import CheckRule
    from schemas.model import Stack


class StackFile(ABC):
    """The keys are in section.schema.json beside each platform.py."""

    @property
    @abstractmethod
    def stack(self) -> type[Stack]:
        """The model of a stack file: the fields of every platform, and this platform's own."""

    @abstractmethod
    def rules(self) -> Mapping[str, CheckRule]:
        """The checks for stacks of this platform only."""

    def facts(self) -> Mapping[str, Any]:
        """`regions` and `realms`, if the platform has them: fields of schemas.facts.Facts."""
        return {}
