# SPDX-License-Identifier: Apache-2.0
"""What commands share: options, and the way from the name of a stack to its file, its checked plan and its cloud."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from catalog.platforms import platforms, platforms_with
from localcloud.files import CHOICES, REQUIRED, VARIABLE, WHERE_POSSIBLE
from schemas.load import stack_name
from trainyard.cli.out import say_aside
from trainyard.local.places import ProjectFileError, cloud_home, hint_of_other_clouds, project_stacks, why_no_stack

if TYPE_CHECKING:
    from components.plan.model import Plan
    from localcloud.control import Cloud
    from schemas.judge import Judged

FC = TypeVar("FC", bound=Callable[..., Any] | click.Command)


def _default_stacks() -> Path:
    try:
        return project_stacks()
    except ProjectFileError as error:
        raise click.UsageError(str(error)) from error


stacks_option = click.option(
    "--stacks",
    type=click.Path(path_type=Path),
    default=_default_stacks,
    help="The folder of the stack files; by default the project's, or this one if stack files are here.",
)
profile_option = click.option("--profile", metavar="NAME", help="The profile of your credentials.")


def place_option(what: str) -> Callable[[FC], FC]:
    """The option `--place`, whose older name is `--compartment`. `what`, for its help: `the runs are`, for example."""
    places = [row.place for row in platforms().values() if row.place]
    return click.option(
        "--place",
        "--compartment",
        "place",
        metavar="PLACE",
        help=f"Where {what}, if not where the stack's file says: {', '.join(places[:-1])}, or {places[-1]}.",
    )


def stack_arguments(command: FC) -> FC:
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


def find_stack_file(named: str, stacks: Path) -> Path:
    """`vision-dev` means Pulumi.vision-dev.yaml in the stacks folder. A name with a slash or .yaml is a file."""
    if is_file_name(named):
        return Path(named)
    file = stacks / f"Pulumi.{named}.yaml"
    if not file.exists():
        raise click.UsageError(why_no_stack(named, stacks))
    return file


def is_file_name(named: str) -> bool:
    """Whether a person named a stack by its file."""
    return named.endswith((".yaml", ".yml")) or os.sep in named


def named_place(named: str, stacks: Path) -> tuple[str, Path]:
    """The name of a stack, and the folder of its file. The file may be missing: `down` has a copy."""
    if not is_file_name(named):
        return named, stacks
    file = Path(named)
    if file.suffix not in (".yaml", ".yml") or not file.stem.startswith("Pulumi."):
        raise click.UsageError(
            f"`{named}` is not the name of a stack file, `Pulumi.STACK.yaml`: name one, or the stack"
        )
    return stack_name(file), file.parent


def plan_or_exit(named: str, stacks: Path, form: str) -> Plan:
    """The plan of a stack. Errors are printed as `trainyard check` prints them, and end the command."""
    # Imported late: commands that need only the name of a stack file stay fast.
    from components.plan.build import StackFileError, plan_file

    try:
        return plan_file(find_stack_file(named, stacks), say_aside)
    except StackFileError as error:
        end_with_findings(error.judged, form)


def plan_with_findings_or_exit(file: Path) -> Plan:
    """Like plan_or_exit, but shows all warnings and notes in full: for commands that act on the file."""
    from components.plan.build import StackFileError, judge_usable_file, plan_of
    from trainyard.cli.render import findings_text

    try:
        return plan_of(judge_usable_file(file, say_aside, lambda judged: say_aside(findings_text([judged], False))))
    except StackFileError as error:
        end_with_findings(error.judged, "text")


def judge_or_exit(named: str, stacks: Path) -> Judged:
    """Like plan_or_exit, for commands that need more than the plan."""
    from components.plan.build import StackFileError, judge_usable_file

    try:
        return judge_usable_file(find_stack_file(named, stacks), say_aside)
    except StackFileError as error:
        end_with_findings(error.judged, "text")


def end_with_findings(judged: Judged, form: str) -> NoReturn:
    """Ends the command as `trainyard check` would: with 2 when the file cannot be read."""
    from trainyard.cli.render import show_findings

    show_findings([judged], form)
    sys.exit(2 if any(finding.code == "TY001" for finding in judged.findings) else 1)


def require_local_cloud(plan: Plan) -> None:
    from components.platform.local import LocalPlatform

    if plan.platform not in platforms_with(LocalPlatform):
        raise click.UsageError(f"{plan.stack} runs on {plan.platform}, which has no local cloud yet")


_HOME_HELP = "The local cloud's folder; by default $TRAINYARD_HOME/cloud, else .trainyard/cloud in the checkout."


def home_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--home", type=click.Path(path_type=Path, file_okay=False), help=_HOME_HELP)(function)


def isolation_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--isolation", type=click.Choice(CHOICES), default=REQUIRED, envvar=VARIABLE, show_default=True,
        help="If this machine cannot isolate runs: let them fail, or run them without security rules.",
    )(function)  # fmt: skip


def require_isolation(cloud: Cloud, isolation: str, command: str, starts_runs: bool = True) -> None:
    """Ends a command through which code would run without isolation, unless its user allowed that: also on a cloud
    that was started with that permission. With `starts_runs`, also one whose runs would all fail. `command`: to type
    again."""
    from localcloud import admin

    allowed = admin.allows_missing_isolation(cloud)
    if isolation == WHERE_POSSIBLE if allowed else not starts_runs:
        return
    if not (reason := admin.why_not_isolated(cloud)):
        return
    already = ""
    if allowed:
        already = f"The local cloud was started with `--isolation {WHERE_POSSIBLE}`, so it would run the code as you.\n"
    elif isolation == WHERE_POSSIBLE:
        already = "The cloud runs already, so stop it first: trainyard cloud stop\n"
    raise click.ClickException(
        f"This machine cannot enforce the plan's security rules: {reason}.\n{already}"
        f"To run code that you trust without them: {command}"
    )


def running_cloud(home: Path | None, stack: str = "") -> Cloud:
    """The local cloud that `--home` names, else the usual one. `stack`: whose cloud the caller looks for."""
    from localcloud.control import find_running_cloud, why_cloud_is_silent

    folder = cloud_home(home)
    cloud = find_running_cloud(folder)
    if cloud is None:
        if silent := why_cloud_is_silent(folder):
            raise click.ClickException(silent)
        raise click.ClickException(
            f"No local cloud runs in {folder}.\nStart it with `trainyard cloud start`."
            f"{hint_of_other_clouds(stack, folder.parent)}"
        )
    return cloud
