# SPDX-License-Identifier: Apache-2.0
"""`trainyard rehearse`: tries a stack for real on a local cloud of its own, before anyone pays for it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from catalog.platforms import require_capability
from components.plan.build import StackFileError
from components.platform.calls import call_of
from components.platform.client import Runs
from components.platform.status import RunStatus, WantedRuns
from trainyard.cli.out import print_data, print_json, say, say_aside
from trainyard.cli.planning import (
    end_with_findings,
    find_stack_file,
    isolation_option,
    plan_or_exit,
    require_local_cloud,
    stacks_option,
)
from trainyard.rehearsal.model import EXIT_CODES

SHOWS = {"text": say, "json": print_json, "markdown": print_data}
USAGE = 2


@click.command()
@click.argument("stack", metavar="STACK_OR_FILE")
@stacks_option
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help="Start at most this many nodes for each job [default: as the file says].",
)
@click.option(
    "--code",
    type=click.Choice(["own", "built-in"]),
    default="own",
    help="Train with the team's code, or with a tiny program.",
)
@click.option(
    "--prove", is_flag=True, help="Also show whether a run would notice if a rule or statement were missing or wider."
)
@click.option(
    "--confirm",
    type=click.IntRange(min=0),
    default=0,
    help="With --prove: confirm this many predictions, each with a run.",
)
@click.option(
    "--faults",
    type=click.IntRange(min=0),
    default=0,
    help="Then disturb runs with this many faults, and see what is said and whether they go on.",
)
@click.option("--seed", type=int, default=1, help="Chooses the predictions to confirm, and the faults.")
@click.option("--minutes", type=click.FloatRange(min=0.1), default=10.0, help="The time that a run may take.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(SHOWS)),
    default="text",
    help="Text for people, JSON for programs, Markdown for pull requests.",
)
@click.option("--keep", is_flag=True, help="Leave everything up afterwards, so that you can look at it.")
@isolation_option
def rehearse(
    stack: str, stacks: Path, nodes: int | None, code: str, prove: bool, confirm: int, faults: int, seed: int,
    minutes: float, form: str, keep: bool, isolation: str,
) -> None:  # fmt: skip
    """Try STACK_OR_FILE for real: its jobs train under its own port rules and statements, on a cloud of its own.

    \b
    Exits with 0 when every run was rehearsed and passed, 1 when something failed, 2 when the stack cannot be used,
    3 when nothing failed but something could not be rehearsed on this machine (the report says what and why).

    Everything is removed afterwards, also after Ctrl-C. Progress goes to stderr, the report to stdout.
    """
    file = find_stack_file(stack, stacks).resolve()
    try:
        plan = plan_or_exit(str(file), file.parent, "text")
    except SystemExit:
        sys.exit(USAGE)
    require_local_cloud(plan)
    from components.platform.rehearsal import RehearsalPlatform
    from trainyard.rehearsal.rehearse import RehearsalOptions, run_rehearsal
    from trainyard.rehearsal.report import RENDERERS
    from trainyard.runs.run_looks import Look
    from trainyard.why.collect import collect_evidence
    from trainyard.why.judge import judge_run

    def explain(runs: Runs, run: RunStatus, framework: str) -> str:
        look = Look(runs, runs.reader(WantedRuns()), call_of("why", say_aside), patience=0.0)
        collected = collect_evidence(look, run, framework, file.parent)
        verdict = judge_run(collected.evidence, collected.symptoms)
        return f"{verdict.cause} ({verdict.certainty})"

    options = RehearsalOptions(nodes, code == "built-in", prove, confirm, faults, seed, minutes, keep, isolation)
    platform = require_capability(plan.platform, RehearsalPlatform)
    try:
        report = run_rehearsal(file, plan, options, platform, say_aside, explain)
    except StackFileError as error:
        end_with_findings(error.judged, "text")
    SHOWS[form](RENDERERS[form](report))
    sys.exit(EXIT_CODES[report.verdict])
