# SPDX-License-Identifier: Apache-2.0
"""From the name of a stack or its file to the checked plan: shared by the commands about one stack."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from components.platform.base import answering
from schemas.names import suggestion
from trainyard.cli.options import stacks_option
from trainyard.cli.out import say_aside

if TYPE_CHECKING:
    from components.plan.model import Plan
    from schemas.judge import Judged

F = TypeVar("F", bound=Callable[..., Any])


def stack_arguments(command: F) -> F:
    """The arguments that the commands about one stack share."""
    for add in (
        click.argument("stack", metavar="STACK_OR_FILE"),
        stacks_option,
        click.option(
            "--format",
            "form",
            type=click.Choice(["text", "json"]),
            default="text",
            help="Text for people, JSON for programs.",
        ),
    ):
        command = add(command)
    return command


def stack_file(named: str, stacks: Path) -> Path:
    """`vision-dev` means Pulumi.vision-dev.yaml in the stacks folder. A name with a slash or .yaml is a file."""
    if named.endswith((".yaml", ".yml")) or os.sep in named:
        return Path(named)
    file = stacks / f"Pulumi.{named}.yaml"
    if not file.exists():
        there = sorted(path.stem.removeprefix("Pulumi.") for path in stacks.glob("Pulumi.*.yaml"))
        hint = suggestion(named, there) if there else "name its file, or another folder with --stacks"
        raise click.UsageError(f"no stack `{named}` in {stacks}/: {hint}")
    return file


def plan_or_exit(named: str, stacks: Path, form: str) -> Plan:
    """The plan of a stack. Errors are printed as `trainyard check` prints them, and end the command."""
    # Commands that need a stack file's name only do not wait for what makes plans.
    from components.plan.file import StackFileError, plan_file

    try:
        return plan_file(stack_file(named, stacks), say_aside)
    except StackFileError as error:
        end_with_findings(error.judged, form)


def plan_with_findings_or_exit(file: Path) -> Plan:
    """The same, with every remark on the file in full, for commands that act on it."""
    from components.plan.build import plan_of
    from components.plan.file import StackFileError, judge_usable_file
    from trainyard.cli.render import text

    try:
        return plan_of(judge_usable_file(file, say_aside, lambda judged: say_aside(text([judged], False))))
    except StackFileError as error:
        end_with_findings(error.judged, "text")


def judge_or_exit(named: str, stacks: Path) -> Judged:
    """The same, for commands that need more than the plan."""
    from components.plan.file import StackFileError, judge_usable_file

    try:
        return judge_usable_file(stack_file(named, stacks), say_aside)
    except StackFileError as error:
        end_with_findings(error.judged, "text")


def end_with_findings(judged: Judged, form: str) -> NoReturn:
    """Ends the command as `trainyard check` would: with 2 when the file cannot be read."""
    from trainyard.cli.render import show

    show([judged], form)
    sys.exit(2 if any(finding.code == "TY001" for finding in judged.findings) else 1)


def require_local_cloud(plan: Plan) -> None:
    if plan.platform not in answering("local"):
        raise click.UsageError(f"{plan.stack} runs on {plan.platform}, which has no local cloud yet")
