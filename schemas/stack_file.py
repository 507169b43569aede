# SPDX-License-Identifier: Apache-2.0
"""What each platform has for its stack files. The keys are in section.schema.json of its home."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.platforms import Capability
from schemas.findings import CheckRule
from schemas.model import Stack


@dataclass(frozen=True, slots=True)
class StackFile(Capability):
    """`model`: the fields of every platform, and this platform's own."""

    place = "stack.STACK_FILE"
    model: type[Stack]


@dataclass(frozen=True, slots=True)
class StackChecks(Capability):
    """The checks for stacks of this platform only. Importing their modules declares them."""

    place = "checks.CHECKS"
    rules: Mapping[str, CheckRule]
