# SPDX-License-Identifier: Apache-2.0
"""`trainyard up|preview STACK --local`: runs plain Pulumi against the local cloud."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from catalog.platforms import require_capability
from components.messages import moved_platform
from components.plan.build import WARNINGS_SHOWN
from components.plan.model import Plan
from components.platform.calls import Tell
from components.platform.local import LocalFile, LocalPlatform
from components.platform.status import WantedRuns
from localcloud.environments import network_tools
from localcloud.files import REQUIRED, WHERE_POSSIBLE
from provider.runs.starting import RETRY_FAILED
from schemas.findings import dotted_path
from schemas.source import read_source
from trainyard.cli.errors import INTERRUPTED
from trainyard.cli.out import say, say_aside
from trainyard.cli.planning import (
    isolation_option,
    named_place,
    plan_with_findings_or_exit,
    require_isolation,
    require_local_cloud,
    stacks_option,
)
from trainyard.cli.run_news import drops_shown_while
from trainyard.cli.up_summary import print_summary, run_rows, where_of_local_stack
from trainyard.engine.progress import Progress
from trainyard.local import stack_states
from trainyard.local.environments import environment_decisions, make_environments, require_makeable, what_to_make
from trainyard.local.local_stack import JUDGED, QUIET, LocalStack
from trainyard.runs.run_looks import Look, TrafficReader, look_for


def local_command(help_text: str, *more: Callable[..., Any]) -> Callable[[Callable[..., None]], click.Command]:
    """The arguments that these commands share, and their message on Ctrl-C."""

    def declare(body: Callable[..., None]) -> click.Command:
        word = body.__name__.rstrip("_")

        @click.argument("stack", default="local")
        @click.option("--local", is_flag=True, help="Use the local cloud. Without it, use `pulumi` itself.")
        @stacks_option
        @isolation_option
        @click.argument("pulumi_arguments", nargs=-1, type=click.UNPROCESSED)
        def command(
            stack: str, local: bool, stacks: Path, isolation: str, pulumi_arguments: Sequence[str],
            **options: bool,
        ) -> None:  # fmt: skip
            name, folder = named_place(stack, stacks)
            if not local:
                variable = f"{RETRY_FAILED}=1 " if options.get("retry_failed") else ""
                raise click.UsageError(
                    f"add --local to use the local cloud; with an account, run: {variable}pulumi {word} -s {name}"
                )
            if any(argument == "--home" or argument.startswith("--home=") for argument in pulumi_arguments):
                raise click.UsageError(f"`{word}` has no --home: set TRAINYARD_HOME to the folder above `cloud`")
            place = LocalStack(name, folder.resolve(), say_aside, isolation=isolation)
            try:
                body(place, list(pulumi_arguments), **options)
            except KeyboardInterrupt:
                flags = [f"--{name.replace('_', '-')}" for name, given in options.items() if given]
                flags += [] if isolation == REQUIRED else ["--isolation", isolation]
                again = place.command(word, "", *flags, *pulumi_arguments)
                say(f"\nInterrupted. To continue: {again}", err=True)
                sys.exit(INTERRUPTED)

        for option in more:
            command = option(command)
        command.__doc__ = help_text
        return click.command(context_settings={"ignore_unknown_options": True})(command)

    return declare


VERBOSE = click.option("--verbose", is_flag=True, help="Also show the stack's outputs.")
RETRY = click.option(
    "--retry-failed", is_flag=True,
    help="Start runs again that failed in an earlier `up`. With --local that is always so.",
)  # fmt: skip
ALLOW = click.option("--allow-failed-runs", is_flag=True, help="Exit with 0 even if runs failed, and nothing else did.")


@local_command("Bring a stack up on the local cloud. Further arguments go to `pulumi up`.", VERBOSE, RETRY, ALLOW)
def up(place: LocalStack, arguments: list[str], verbose: bool, retry_failed: bool, allow_failed_runs: bool) -> None:
    _bring_up(place, [*_output_options(verbose), *arguments], allow_failed_runs)


def _bring_up(place: LocalStack, arguments: list[str], allow_failed_runs: bool) -> None:
    """Exits with a code other than 0 if anything went wrong."""
    plan = _checked_plan(place)
    require_makeable(plan.jobs.values(), place.file.parent)
    network_tools.make_network_tools_if_possible(Progress())
    cloud = place.start_cloud()
    if any(job.runs for job in plan.jobs.values()):
        require_isolation(cloud, place.isolation, place.command("up", "", "--isolation", WHERE_POSSIBLE))
    place.claim()
    make_environments(plan.jobs.values(), place.file.parent, Progress())
    borrowed = _bring_up_lender(place, plan, allow_failed_runs)
    _tell_remarks(place.select(plan, cloud))
    _tell_of_renames(place, plan)
    require_capability(plan.platform, LocalPlatform).ready_images(cloud, plan, borrowed)
    before = run_rows(place)
    waits = any(run.until != "accepted" for job in plan.jobs.values() for run in job.runs.values())

    def look() -> Look:
        return look_for(where_of_local_stack(place, cloud, place.outputs), WantedRuns(place.stack))

    with drops_shown_while(look, TrafficReader(cloud)) if waits else nullcontext():
        done = place.up(*_policy_options(arguments), *arguments)
    code, only_runs_failed = print_summary(place, plan, cloud, before, done)
    if code and not (only_runs_failed and allow_failed_runs):
        sys.exit(code)


def _bring_up_lender(place: LocalStack, plan: Plan, allow_failed_runs: bool) -> str:
    """Bring up the stack whose outputs this one takes. Returns its registry's address if this stack uses it."""
    used = _stack_used(plan)
    if not used:
        return ""
    if not place.is_up(used):
        say(f"{place.stack} takes {', '.join(plan.taken)} from {used}: bringing up {used} first.")
        _bring_up(
            LocalStack(used, place.file.parent, say_aside, isolation=place.isolation),
            [*_output_options(False)],
            allow_failed_runs,
        )
    return str(place.outputs(used).get("imagePushAddress", "")) if "registry" in plan.taken else ""


@local_command("Show what `up` would change. Further arguments go to `pulumi preview`.", VERBOSE, RETRY)
def preview(place: LocalStack, arguments: list[str], verbose: bool, retry_failed: bool) -> None:
    # With `--json`, stdout is for programs, so messages go to stderr.
    tell = say_aside if {"--json", "-j"} & {*arguments} else say
    plan = _checked_plan(place)
    cloud = place.start_cloud()
    used = _stack_used(plan)
    if used and not place.is_up(used):
        raise click.ClickException(
            f"{place.stack} takes {', '.join(plan.taken)} from {used}, which is not up.\n"
            f"Bring it up first: {place.command('up', used)}"
        )
    _tell_remarks(place.select(plan, cloud), tell)
    for line in environment_decisions(plan.jobs.values(), place.file.parent):
        tell(f"  here: {line}")
    if missing := what_to_make(plan, place.file.parent):
        tell(f"  here: `up` makes first, once per machine: {missing}")
    _tell_of_renames(place, plan, tell)
    sys.exit(
        place.pulumi("preview", "--non-interactive", *_output_options(verbose), *_policy_options(arguments), *arguments)
    )


def _output_options(verbose: bool) -> tuple[str, ...]:
    """Hides the stack's outputs: they are for other stacks and programs, and hundreds of lines would hide errors."""
    return () if verbose else ("--suppress-outputs",)


@local_command("Import existing resources into a stack on the local cloud. TYPE, NAME and ID go to `pulumi import`.")
def import_(place: LocalStack, arguments: list[str]) -> None:
    plan = _checked_plan(place)
    cloud = place.start_cloud()
    place.claim()
    _tell_remarks(place.select(plan, cloud))
    # The engine runs in another folder.
    for index, (before, word) in enumerate(zip(["", *arguments], arguments, strict=False)):
        if before in ("--file", "-f"):
            arguments[index] = str(Path(word).absolute())
    # The stack file describes the resource: no code has to be written.
    code = place.pulumi("import", *QUIET, "--generate-code=false", *arguments)
    if not code:
        say(f"\nTo see whether the stack file says the same: {place.command('preview')}")
    sys.exit(code)


def _policy_options(arguments: list[str]) -> tuple[str, ...]:
    """The policy pack, except for targeted changes: a pack sees resources that are not targeted without properties."""
    return () if any(word.startswith("--target") for word in arguments) else JUDGED


def _tell_remarks(local: LocalFile, tell: Tell = say) -> None:
    for remark in local.remarks:
        tell(f"  here: {remark}")


def _tell_of_renames(place: LocalStack, plan: Plan, tell: Tell = say) -> None:
    own, _ = place.states()
    for text in stack_states.rename_warnings(own.rows, plan, require_capability(plan.platform, LocalPlatform)):
        tell(f"  renamed? {text}")


def _checked_plan(place: LocalStack) -> Plan:
    place.must_have_file()
    plan = plan_with_findings_or_exit(place.file)
    place.env[WARNINGS_SHOWN] = "1"
    require_local_cloud(plan)
    own, _ = place.states()
    # The program refuses this too. But here, nothing has been made for the other platform yet, and `down` and `runs`
    # can still read from the copy of the file where the stack is.
    if (there := place.platform_name) != plan.platform and any(own.made()):
        wrong = moved_platform(plan.platform, there)
        line, _ = read_source(place.file).position(wrong.path)
        raise click.ClickException(
            f"{place.file}:{line}: {dotted_path(wrong.path)}: {wrong.message}\n{wrong.remedy}: {place.command('down')}"
        )
    return plan


def _stack_used(plan: Plan) -> str:
    return (plan.uses or "").rpartition("/")[2]
