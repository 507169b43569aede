# SPDX-License-Identifier: Apache-2.0
"""From a stack file to its checked plan, for whatever needs the plan of a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from components.plan.build import plan_of
from components.plan.model import Plan
from schemas.judge import Judged, judge_file
from schemas.names import plural

# A variable of the program, set by a command that has shown the file's warnings: the engine prints each three times.
WARNINGS_SHOWN = "TRAINYARD_WARNINGS_SHOWN"


class StackFileError(Exception):
    """The stack file has errors, so it has no plan. `judged` holds the findings."""

    def __init__(self, judged: Judged) -> None:
        super().__init__(f"{judged.source.file} has errors")
        self.judged = judged


def plan_file(file: Path, tell: Callable[[str], None]) -> Plan:
    """The plan of a stack file."""
    return plan_of(judge_usable_file(file, tell))


def judge_usable_file(file: Path, tell: Callable[[str], None], show: Callable[[Judged], None] | None = None) -> Judged:
    """A stack file without errors. Remarks that do not keep it from being used are shown, or else counted."""
    judged = judge_file(file, str(file))
    if judged.errors or judged.stack is None:
        raise StackFileError(judged)
    if judged.findings and show:
        show(judged)
    elif judged.findings:
        tell(f"{plural(len(judged.findings), 'remark')}: trainyard check {file} shows them")
    return judged
