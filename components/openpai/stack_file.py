# SPDX-License-Identifier: Apache-2.0
"""What a stack file may say for OpenPAI only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from components.openpai.stack import OpenPaiStack

if TYPE_CHECKING:
    from schemas.checks.registry import CheckRule


class OpenPaiStackFile:
    stack = OpenPaiStack

    def rules(self) -> Mapping[str, CheckRule]:
        import components.openpai.checks  # noqa: F401  # declares them
        from components.openpai.checks.registry import RULES

        return RULES

    def facts(self) -> Mapping[str, Any]:
        return {}


STACK_FILE = OpenPaiStackFile()
