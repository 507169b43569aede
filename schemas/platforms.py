# SPDX-License-Identifier: Apache-2.0
"""A platform's part of the stack file: one object in the platform's folder, imported on first use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from catalog.platforms import import_platform
from schemas.model import Stack

if TYPE_CHECKING:
    from schemas.checks.registry import CheckRule


class StackFile(Protocol):
    """A part of `components.platform.base.Platform`. The keys are in section.schema.json beside each platform.py."""

    @property
    def stack(self) -> type[Stack]:
        """The columns of every platform, and this platform's own."""

    def rules(self) -> Mapping[str, CheckRule]:
        """The checks for stacks of this platform only."""

    def facts(self) -> Mapping[str, Any]:
        """`shapes`, `regions` and `realms`, as far as the platform has them: columns of schemas.facts.Facts."""


@cache
def stack_file(platform: str) -> StackFile:
    part: StackFile = import_platform(platform)
    return part
