# SPDX-License-Identifier: Apache-2.0
"""What a stack file may say for AWS DL1 only: its keys, and the checks of what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from catalog.tables import table
from components.aws_dl1.stack import AwsDl1Stack

if TYPE_CHECKING:
    from schemas.checks.registry import CheckRule


class AwsDl1StackFile:
    stack = AwsDl1Stack

    def rules(self) -> Mapping[str, CheckRule]:
        import components.aws_dl1.checks  # noqa: F401  # declares them
        from components.aws_dl1.checks.registry import RULES

        return RULES

    def facts(self) -> Mapping[str, Any]:
        rows = table("aws_dl1")
        return {"shapes": rows["shapes"], "regions": rows["regions"]}


STACK_FILE = AwsDl1StackFile()
