# SPDX-License-Identifier: Apache-2.0
"""`trainyard runs`: shows what runs are doing, on the local cloud or on the stack's platform."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from components.platform.status import RunStatus
from launcher.escaping import terminal_line
from schemas.name_suggestions import count_noun, suggest_name
from trainyard.cli.out import ask_yes_or_no, print_json, redraw_lines, say, say_aside, say_in_colour
from trainyard.cli.run_selection import RunSelection, run_arguments
from trainyard.cli.waiting import show_waiting
from trainyard.engine.progress import can_redraw_lines

if TYPE_CHECKING:
    from trainyard.runs.ranking import Ranking

_NO_METRICS = (
    ". They have no metrics so far.\nTo report some, a script appends JSON lines to the file $TRAINYARD_PROGRESS, "
    'such as {"step": 100, "loss": 0.5}, or leaves result.json in $TRAINYARD_OUTPUT (docs/runs.md)'
)
# Without a terminal, a progress bar is printed as a new line after this time.
BAR_SECONDS = 10.0


class DefaultList(click.Group):
    """`trainyard runs …` is `trainyard runs list …`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


every_option = click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=2.0,
    metavar="SECONDS",
    help="Look again after this many seconds.",
)


@click.group(cls=DefaultList)
def runs() -> None:
    """Show what runs are doing: their states, their output, their progress.

    \b
    trainyard runs --local                    every run on the local cloud, one line each
    trainyard runs vision-prod resnet/base    a run with the state of each rank
    trainyard runs vision-prod resnet/sweep --by val_loss    a sweep, the best run first
    trainyard runs watch vision-prod resnet   the runs of a job until they end
    trainyard runs why vision-prod resnet/base    why a run failed or hangs, and what to do
    trainyard runs logs vision-prod resnet/base --follow
    trainyard runs outputs vision-prod resnet/base --to ./results
    trainyard runs cancel vision-prod resnet/base

    Where JOB/RUN is given, RUN may be a run with `each:`: it names all runs of the sweep.

    Credentials are those that the cloud's own clients use, or those that `trainyard cloud env` sets. To start a run
    again, write a higher `attempt:` in the stack file.
    """


@runs.command("list")
@click.option("--failed", is_flag=True, help="Show only the runs that failed, each with the reason.")
@click.option("--ranks", is_flag=True, help="Show the state of each rank, also where no run is named.")
@click.option("--by", metavar="METRIC", help="Sort by a metric that runs left in result.json or reported, best first.")
@click.option("--highest/--lowest", default=None, help="Which values are best. By default the metric's name says so.")
@click.option("--history", is_flag=True, help="Show earlier attempts too.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="Text for people, JSON for programs."
)
@run_arguments
def list_runs(selection: RunSelection, failed: bool, ranks: bool, history: bool, form: str, **order: Any) -> None:
    """Show runs, one line each. With JOB/RUN: the state of each of its ranks.

    JOB/SWEEP, where SWEEP is a run with `each:` in the stack file, shows the sweep's runs by their metric, the best
    first.
    """
    from trainyard.cli import runs_text

    seen, machines, now = selection.seen(history=history), selection.machines(), datetime.now(UTC)
    runs_now = [run for run in seen if run.state == "FAILED"] if failed else seen
    ranking = _rank_selected(selection, runs_now, form, **order)
    rows = runs_text.machines_text(machines or (), now)
    if form == "json":
        print_json(runs_text.runs_json(runs_now, machines, ranking))
        if rows and not runs_now:
            say_aside(rows)  # machines without runs, which still cost money
        return
    if seen and not runs_now:
        shown = f"None of {count_noun(len(seen), 'run')} has failed."
    elif not seen:
        shown = selection.nothing()
    else:
        shown = _runs_as_text(selection, runs_now, ranking, ranks, now)
    say_in_colour("\n".join(filter(None, (shown, rows))), _has_colour())


def _rank_selected(
    selection: RunSelection, runs_now: Sequence[RunStatus], form: str, by: str | None, highest: bool | None
) -> Ranking | None:
    """None if no order is requested. As text, a sweep is always in order."""
    if not runs_now or not (by or highest is not None or (selection.wanted.sweep and form == "text")):
        return None
    from trainyard.cli.outputs import read_results
    from trainyard.runs.ranking import metric_choices, rank_runs

    results = read_results(selection, runs_now)
    ranking = rank_runs(runs_now, results, by, highest)
    if by and not any(ranked.metric for ranked in ranking.runs):
        choices = metric_choices(runs_now, results)
        has = f": {suggest_name(by, choices)}" if choices else _NO_METRICS
        raise click.ClickException(f"none of these runs has a number `{by}` in result.json or its progress{has}")
    return ranking if ranking.by else None


def _runs_as_text(
    selection: RunSelection, runs_now: Sequence[RunStatus], ranking: Ranking | None, ranks: bool, now: datetime
) -> str:
    from trainyard.cli import runs_text

    if ranks or (selection.wanted.run and not selection.wanted.sweep and ranking is None):
        return runs_text.run_blocks_text(
            [ranked.run for ranked in ranking.runs] if ranking else runs_now, now, _has_colour()
        )
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if ranking is not None:
        return runs_text.ranking_text(ranking, now, _has_colour(), width)
    return runs_text.lines_text(runs_now, now, _has_colour(), width)


@runs.command("watch")
@every_option
@run_arguments
def watch_runs_command(selection: RunSelection, every: float) -> None:
    """Show runs until all of them have ended. Exits with 1 when one did not succeed.

    On a terminal the table is refreshed in place, with a curve of what each rank reports; elsewhere each change is one
    line.
    """
    from trainyard.cli.runs_watch import Screen, levels_of
    from trainyard.runs.run_looks import ProgressHistory, recall_progress

    moves = os.environ.get("TERM") != "dumb"
    history = ProgressHistory(recall_progress(selection.look, selection.where.cloud))
    screen = Screen(history, sys.stdout.isatty(), moves, _has_colour() and moves, levels_of(sys.stdout))
    while True:
        runs_now = selection.runs()
        screen.show(runs_now, datetime.now(UTC))
        if all(run.over for run in runs_now):
            break
        time.sleep(every)
    sys.exit(0 if all(run.state == "SUCCEEDED" for run in runs_now) else 1)


@runs.command("why")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="Text for people, JSON for programs."
)
@run_arguments
def explain_run_command(selection: RunSelection, form: str) -> None:
    """Say why a run failed or hangs: the cause, the rank, the line of your code, the rule to add, the remedy.

    The verdict is certain, likely or unknown, and names its evidence. It is certain only if something outside of the
    nodes shows the cause (the platform, a firewall), or if two kinds of evidence agree.
    """
    from trainyard.cli.runs_why import explain_run

    explain_run(selection, form, _has_colour())


@runs.command("logs")
@click.option("--follow", "-f", is_flag=True, help="Print new lines until the runs have ended.")
@click.option("--rank", "ranks", type=int, multiple=True, help="Print only this rank's lines; may be repeated.")
@every_option
@run_arguments
def run_logs_command(selection: RunSelection, follow: bool, ranks: tuple[int, ...], every: float) -> None:
    """Print the output of runs. The ranks are merged in the order of time, and each line has its rank."""
    runs_now = follow_lines(selection, frozenset(ranks), every if follow else None)
    if not any(node.log for run in runs_now for node in run.nodes):
        raise click.ClickException("these runs keep no log; `trainyard:logs` in the stack file turns logs on and off")


def follow_lines(selection: RunSelection, ranks: frozenset[int], every: float | None) -> list[RunStatus]:
    """Prints lines until the runs have ended, and then how, or once if `every` is None. Returns the last status of the
    runs."""
    from trainyard.cli.run_news import DroppedNews, empty_log_lines, end_lines

    follower, news = Follower(can_redraw_lines(sys.stdout) and every is not None), DroppedNews()
    while True:
        runs_now = selection.runs()
        lines, last = selection.look.lines(runs_now, ranks), every is None or all(run.over for run in runs_now)
        notes = [line for run in runs_now for line in news.new_lines(run)] if not last else ()
        follower.show(lines, lambda: selection.look.unfinished(ranks), last, notes)
        if last:
            break
        sys.stdout.flush()
        time.sleep(every or 0.0)
    for run in runs_now if every is not None else ():
        say_aside(f"{terminal_line(run.title)}: {run.state}")
        for line in end_lines(run):
            say_aside(f"  {line}")
    for line in () if follower.has_lines or ranks else empty_log_lines(runs_now):
        say_aside(line)
    return runs_now


@runs.command("outputs")
@click.option("--to", type=click.Path(path_type=Path), metavar="DIR", help="Fetch the files into this folder.")
@click.option("--history", is_flag=True, help="Earlier attempts too.")
@click.option("--overwrite", is_flag=True, help="With --to: replace files that have other content.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="Text for people, JSON for programs."
)
@run_arguments
def run_outputs_command(selection: RunSelection, to: Path | None, history: bool, overwrite: bool, form: str) -> None:
    """List the files that runs left in the bucket, or fetch them with --to.

    Files go to DIR/JOB/RUN/, with --history to DIR/JOB/RUN/ATTEMPT/. Of a run that is still going, you get the files so
    far. Nothing is written outside of DIR, and no link in it is followed.
    """
    from trainyard.cli import outputs as commands

    shown = commands.find_outputs(selection, "get" if to else "list", history)
    if to is not None:
        commands.fetch_outputs(shown, to, overwrite)
    else:
        commands.show_outputs(shown, form)


@runs.command("cancel")
@click.option("--yes", is_flag=True, help="Do not ask.")
@run_arguments
def cancel_runs_command(selection: RunSelection, yes: bool) -> None:
    """End runs that are still going. To start one again, write a higher `attempt:` in its stack file."""
    if selection.wanted.stack is None or selection.wanted.job is None:
        raise click.UsageError("which run? Give STACK and JOB, or STACK and JOB/RUN")
    alive = [run for run in selection.runs(deeply=False) if not run.over]
    if not alive:
        say("Nothing to end: these runs are over.")
        return
    titles = ", ".join(run.title for run in alive)
    if selection.wanted.sweep:
        titles = f"{count_noun(len(alive), 'run')} of the sweep {selection.wanted.job}/{selection.wanted.run}"
    if not yes and not ask_yes_or_no(f"End {titles} of {selection.wanted.stack}?"):
        sys.exit(1)
    with show_waiting(f"ending {count_noun(len(alive), 'run')}"):
        for run in alive:
            selection.look.cancel(run)
    say(f"Asked to end: {titles}.")


def _has_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


@dataclass
class Follower:
    """Prints lines of runs as they come. Lines that still grow, such as progress bars, come last.

    A terminal shows them in place. Elsewhere, a changed one is printed every ten seconds.
    """

    draws: bool
    _drawn: list[str] = field(default_factory=list)
    _printed: set[str] = field(default_factory=set)
    _printed_at: float = -BAR_SECONDS
    has_lines: bool = False

    def show(
        self, lines: Iterable[str], growing: Callable[[], Sequence[str]], last: bool, notes: Sequence[str] = ()
    ) -> None:
        """`growing` is called after `lines` is read. `last`: nothing comes after these lines. `notes` are about the
        runs, already escaped: they go to stderr, except where lines are redrawn."""
        if not self.draws:
            for line in lines:
                self.has_lines = True
                say(terminal_line(line))
            self._print(growing(), last)
            for note in notes:
                say_aside(note)
            return
        new, bars = [*map(terminal_line, lines)], [*map(terminal_line, growing())]
        self.has_lines = self.has_lines or bool(new or bars)
        new += notes
        if last:
            new, bars = [*new, *bars], []
        size = shutil.get_terminal_size()
        # Rows beyond the screen, and rows that wrap, cannot be redrawn.
        bars = [bar[: size.columns - 1] for bar in bars][-(size.lines - 1) :]
        if new or bars != self._drawn:
            redraw_lines([*new, *bars], over=len(self._drawn))
            self._drawn = bars

    def _print(self, bars: Sequence[str], last: bool) -> None:
        self.has_lines = self.has_lines or bool(bars)
        if not last and time.monotonic() - self._printed_at < BAR_SECONDS:
            return
        for bar in bars:
            if last or bar not in self._printed:
                say(terminal_line(bar))
        if bars:
            self._printed, self._printed_at = set(bars), time.monotonic()
