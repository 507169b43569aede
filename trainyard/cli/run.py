# SPDX-License-Identifier: Apache-2.0
"""`trainyard run`: starts a deployed job once more with other arguments, without an `up`."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from components.plan.show import aligned_rows
from components.platform.calls import call_of
from components.platform.client import UnknownPlaceError, Where
from components.platform.status import WantedRuns
from components.platform.tries import PREFIX, PlannedTry, ReadyTry, TryError, WantedTry
from localcloud.files import WHERE_POSSIBLE
from schemas.load import stack_name
from schemas.name_suggestions import count_noun, quoted_list
from trainyard.cli.errors import INTERRUPTED
from trainyard.cli.out import say, say_aside
from trainyard.cli.planning import (
    find_stack_file,
    home_option,
    is_file_name,
    isolation_option,
    judge_or_exit,
    place_option,
    profile_option,
    require_isolation,
    running_cloud,
    stacks_option,
)
from trainyard.cli.run_selection import RunSelection, where_of
from trainyard.cli.runs import follow_lines
from trainyard.cli.waiting import show_waiting
from trainyard.local.places import hint_of_other_clouds, own_command, stacks_words
from trainyard.runs.run_looks import look_for
from trainyard.runs.tries import plan_try, prepare_try, runs_for_try, start_try, try_environment

_SECONDS_BETWEEN_LOOKS = 1.0
_NAME = re.compile(r"[a-z0-9-]{0,35}[a-z0-9]")


@click.command()
@click.argument("stack")
@click.argument("job", metavar="JOB[/RUN]")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENT...]", type=click.UNPROCESSED)
@click.option("--args", "text", help="The same arguments in one text: --args '--lr 0.1'.")
@click.option("--env", "variables", multiple=True, metavar="NAME=VALUE", help="A variable of the try; may be repeated.")
@click.option("--name", metavar="NAME", help=f"What the try is called after `{PREFIX}`; by default a few letters.")
@click.option("--follow", "-f", is_flag=True, help="Print its lines until it has ended. Exits with 1 if it failed.")
@click.option("--anyway", is_flag=True, help="Start the deployed job although the stack file has changed since.")
@stacks_option
@click.option("--local", is_flag=True, help="On the local cloud, where `trainyard up --local` deployed the stack.")
@home_option
@place_option("the stack is deployed")
@profile_option
@isolation_option
def run(
    stack: str, job: str, arguments: Sequence[str], text: str | None, variables: Sequence[str], name: str | None,
    follow: bool, anyway: bool, stacks: Path, local: bool, home: Path | None, place: str | None,
    profile: str | None, isolation: str,
) -> None:  # fmt: skip
    """Start a deployed JOB once more, with other arguments, within seconds.

    \b
    trainyard run vision-prod resnet -- --lr 0.01
    trainyard run vision-prod resnet/tuned --env SEED=7 --follow

    The try is like RUN, by default the first run of the job: same code, image, shape, nodes and longest time. ARGUMENTs
    replace those of that run. The stack's state does not change. `trainyard runs` shows the try, and
    `trainyard runs cancel` ends it; `down`, and an `up` that replaces the job, end it too.
    """
    cloud = running_cloud(home, stack) if local or home else None
    if cloud is not None:
        require_isolation(cloud, isolation, f"trainyard run --isolation {WHERE_POSSIBLE} ...")
    wanted = _parse_try(job, arguments, text, variables, name)
    judged = judge_or_exit(stack, stacks)
    where = where_of(find_stack_file(stack, stacks), cloud, place, profile)
    # The arguments by which other commands find the same stack.
    words = shlex.join([
        stack,
        *([] if is_file_name(stack) else stacks_words(stacks)),
        *(["--home", str(home)] if home else ["--local"] if local else []),
        *(["--place", place] if place else []),
        *(["--profile", profile] if profile else []),
    ])  # fmt: skip
    try:
        with show_waiting("reading what is deployed"):
            runs, call = runs_for_try(where), call_of("run", say_aside)
            planned = plan_try(judged, wanted, runs.region)
            ready = prepare_try(runs, call, planned, judged.folder)
        _say_changes(ready, anyway)
        with show_waiting(f"starting {planned.title}"):
            nodes = start_try(runs, call, ready)
    except TryError as error:
        other = hint_of_other_clouds(stack_name(find_stack_file(stack, stacks)), cloud.home.parent) if cloud else ""
        raise click.ClickException(f"{error}{other}") from None
    _say_started(planned, len(nodes), words, follow)
    if follow:
        _follow_try(planned, where, words)


def _parse_try(
    job: str, arguments: Sequence[str], text: str | None, variables: Sequence[str], name: str | None
) -> WantedTry:
    if text is not None and arguments:
        raise click.UsageError("arguments come after `--` or in --args, not in both")
    try:
        args = tuple(arguments) or (None if text is None else tuple(shlex.split(text)))
    except ValueError as problem:
        raise click.UsageError(f"--args cannot be split into words: {str(problem).lower()}") from None
    values = {}
    for variable in variables:
        key, equals, value = variable.partition("=")
        if not equals or not key.isidentifier() or not key.isascii():
            # The text is not shown: it may be a secret.
            raise click.UsageError("--env takes NAME=VALUE; a name has letters, digits and underscores")
        values[key] = value
    if name is not None and not _NAME.fullmatch(name):
        raise click.UsageError("--name takes up to 36 lowercase letters, digits and hyphens; it ends with no hyphen")
    named_job, _, run = job.partition("/")
    return WantedTry(named_job, run or None, f"{PREFIX}{name}" if name else "", args, try_environment(values))


def _say_changes(ready: ReadyTry, anyway: bool) -> None:
    if not ready.changes:
        return
    fields = quoted_list(ready.changes)
    job = ready.planned.job.name
    if not anyway:
        raise click.ClickException(
            f"The job {job} has changed in the stack file since it was deployed: {fields}.\n"
            "An `up` of the stack deploys the change. `--anyway` starts what is deployed."
        )
    say_aside(f"{fields} changed in the stack file since {job} was deployed: what is deployed is started.")


def _runs_command(what: str, planned: PlannedTry, words: str, *more: str) -> str:
    stack, *rest = shlex.split(words)
    return f"{own_command()} {shlex.join(['runs', what, stack, planned.title, *rest, *more])}"


def _say_started(planned: PlannedTry, nodes: int, words: str, follow: bool) -> None:
    job = planned.job
    like = f", like {job.name}/{planned.like.name}" if planned.like else ""
    size = count_noun(job.nodes, "node")
    say_aside(f"Started {planned.title}{like}: {size} of {job.shape.name}, at most {job.maximum_runtime_minutes} min.")
    rows = [("end it", _runs_command("cancel", planned, words))]
    if not follow:
        rows = [
            ("follow", _runs_command("logs", planned, words, "--follow")),
            ("watch", _runs_command("watch", planned, words)),
            *rows,
        ]
    say_aside("\n".join(aligned_rows(rows)))
    if not follow:
        say(planned.title)


def _follow_try(planned: PlannedTry, where: Where, words: str) -> None:
    wanted = WantedRuns(planned.plan.stack, planned.job.name, planned.run.name)
    try:
        ended = follow_lines(RunSelection(look_for(where, wanted), where, wanted), frozenset(), _SECONDS_BETWEEN_LOOKS)
    except UnknownPlaceError as error:
        raise click.UsageError(str(error)) from None
    except KeyboardInterrupt:
        say(f"\n{planned.title} goes on. To end it: {_runs_command('cancel', planned, words)}", err=True)
        sys.exit(INTERRUPTED)
    sys.exit(0 if {run.state for run in ended} == {"SUCCEEDED"} else 1)
