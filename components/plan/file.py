# SPDX-License-Identifier: Apache-2.0
"""From a stack file to its checked plan, for whatever needs the plan of a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from components.plan.build import plan_of
from components.plan.model import Plan
from schemas.judge import Judged, judge_file
from schemas.names import plural


class StackFileError(Exception):
    """The stack file has errors, so it has no plan. `judged` holds the findings."""

    def __init__(self, judged: Judged) -> None:
        super().__init__(f"{judged.source.file} has errors")
        self.judged = judged


def plan_file(file: Path, tell: Callable[[str], None]) -> Plan:
    """The plan of a stack file."""
    return plan_of(judge_usable_file(file, tell))


def judge_usable_file(file: Path, tell: Callable[[str], None]) -> Judged:
    """A stack file without errors; remarks that do not keep it from being used are counted, not shown."""
    judged = judge_file(file, str(file))
    if judged.errors or judged.stack is None:
        raise StackFileError(judged)
    if judged.findings:
        tell(f"{plural(len(judged.findings), 'remark')}: trainyard check {file} shows them")
    return judged
