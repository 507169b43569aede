# SPDX-License-Identifier: Apache-2.0
"""The Stack of paper."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.model import Stack
from schemas.stack_file import StackFile


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperStack(Stack):
    sheet: str = "sheet.json"
    desk: str = "desk"


STACK_FILE = StackFile(PaperStack)
