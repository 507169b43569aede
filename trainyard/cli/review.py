# SPDX-License-Identifier: Apache-2.0
"""`trainyard review`: what a change of stacks means, without an engine, a cloud or credentials."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from catalog.secret_looks import without_tokens
from schemas.load import stack_name
from schemas.name_suggestions import suggest_name
from trainyard.cli.errors import ResultCommand
from trainyard.cli.out import print_data, print_json, say, say_aside
from trainyard.cli.planning import is_file_name, named_place, stacks_option

if TYPE_CHECKING:
    from trainyard.review.gates import Gate
    from trainyard.review.recorders import Recorders
    from trainyard.review.revisions import Side

_FORMS = ("text", "markdown", "html", "json", "sarif")
_FORM_OF = {".md": "markdown", ".html": "html", ".json": "json", ".sarif": "sarif", ".txt": "text"}
_FILE = click.Path(path_type=Path, dir_okay=False)
# Progress is shown after this time.
_PATIENCE_SECONDS = 2.0


@click.command(cls=ResultCommand)
@click.argument("named", nargs=-1, metavar="[STACK_OR_FILE]...")
@click.option("--all", "every", is_flag=True, help="All stacks of the folder, also those that one side lacks.")
@stacks_option
@click.option("--against", metavar="REV", help="Compare with this revision of git, and show only the difference.")
@click.option("--preview", type=_FILE, help="Read what `pulumi preview --json --show-sames` wrote, for one stack.")
@click.option("--format", "form", type=click.Choice(_FORMS), default="text", help="The form of the review.")
@click.option(
    "--output",
    "outputs",
    type=_FILE,
    multiple=True,
    help="Write it into this file: its ending (.md, .html, .json, .sarif, .txt) sets the format. May be repeated.",
)
@click.option("--on", metavar="DATE", help="The date of the review, as 2026-11-26: waivers end. Default: today.")
@click.option("--prices", type=_FILE, help="A team's own prices: TOML, a table for each shape with `usd_per_hour`.")
@click.option("--rehearsal", type=_FILE, help="The report of `trainyard rehearse STACK --format json`, as proof.")
@click.option("--policy-config", type=_FILE, help="The configuration of the policy pack, as JSON (docs/policies.md).")
@click.option(
    "--fail-on",
    metavar="GATES",
    help="Exit with 1 on any of: replace, exposure, access-gain, cost=N (dollars), policy, unproven, program.",
)
def review(
    named: tuple[str, ...],
    every: bool,
    stacks: Path,
    against: str | None,
    preview: Path | None,
    form: str,
    outputs: tuple[Path, ...],
    on: str | None,
    prices: Path | None,
    rehearsal: Path | None,
    policy_config: Path | None,
    fail_on: str | None,
) -> None:
    """Say what a change of stacks means: what opens, who gains what, what is lost, what it costs.

    Stacks are named by their names or files; without names, all of the folder are reviewed. Without --against, a stack
    is reviewed as if it were new. The program of each stack is run, without a cloud: review only code that you would
    run. Exits with 0, with 1 when a gate of --fail-on trips, and with 2 when there is nothing to review or a review
    fails.
    """
    # The collector would walk what is imported again and again, for a process that lives for seconds.
    gc.disable()
    click.get_current_context().call_on_close(gc.enable)
    if preview and (against is not None or every or len(named) != 1):
        raise click.UsageError("--preview is of one stack: name it, without --all and --against")
    if named and every:
        raise click.UsageError("name stacks, or say --all")
    reviewed_on = _parse_date_option(on)
    gates = () if fail_on is None else _parse_gate_option(fail_on)
    with _exit_on_signals(), ExitStack() as until_the_end, _errors_in_words():
        names, after, before = _find_sides(until_the_end, named, stacks, against)
        if rehearsal and len(names) != 1:
            raise click.UsageError("--rehearsal is of one stack: name it")
        recorders = None if preview else until_the_end.enter_context(_start_recorders(names, after, before))
        # The programs' processes start while this one imports.
        from trainyard.review.changed_files import review_repository
        from trainyard.review.costs import read_prices
        from trainyard.review.evaluate import ReviewContext
        from trainyard.review.forms import FORMS
        from trainyard.review.gates import find_tripped_gates
        from trainyard.review.proof import read_rehearsal
        from trainyard.review.reviewing import ReviewRequest, review_preview, review_stacks

        own_prices = read_prices(prices) if prices else {}
        request = ReviewRequest(
            names,
            after,
            before,
            ReviewContext(reviewed_on, after.commit, _revision_words(against, before), own_prices),
            rehearsal=read_rehearsal(rehearsal, stack_name(Path(names[0]))) if rehearsal else None,
            pack=_read_pack_config(policy_config) if policy_config else {},
            shown=_path_from_here,
        )
        repository = review_repository(after.stacks, before)
        if preview:
            reviews = [review_preview(request, preview)]
        else:
            assert recorders is not None
            reviews = list(review_stacks(request, recorders, _Progress()))
    repository = replace(repository, not_isolated="; ".join(request.not_isolated))
    tripped = find_tripped_gates(reviews, gates, repository)
    for file in outputs:
        text = without_tokens(FORMS[_FORM_OF.get(file.suffix, form)](reviews, tripped, repository))
        try:
            file.write_text(text if text.endswith("\n") else text + "\n", "utf-8")
        except OSError as problem:
            raise click.ClickException(f"{file}: {problem.strerror}") from None
    if not outputs:
        text = without_tokens(FORMS[form](reviews, tripped, repository))
        if form == "text":
            say(text)
        elif form in ("json", "sarif"):
            print_json(text)
        else:
            print_data(text.rstrip("\n"))
    if outputs or form != "text":
        for gate in tripped:
            say_aside(f"gate {gate.gate}: {gate.where}: {gate.because}")
    sys.exit(1 if tripped else 2 if any(review.failed for review in reviews) else 0)


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Exits on SIGTERM and SIGHUP, from a cancelled workflow or a closed terminal, after removing temporary folders."""
    # Under `nohup`, SIGHUP stays ignored.
    heard = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    before = [signal.signal(number, lambda number, _: sys.exit(128 + number)) for number in heard]
    try:
        yield
    finally:
        for number, handler in zip(heard, before, strict=True):
            signal.signal(number, handler)


def _parse_gate_option(text: str) -> tuple[Gate, ...]:
    from trainyard.review.gates import GateError, parse_gates

    try:
        return parse_gates(text)
    except GateError as wrong:
        raise click.UsageError(f"--fail-on: {wrong}") from None


@contextmanager
def _errors_in_words() -> Iterator[None]:
    from trainyard.review.recorder import RecordingError
    from trainyard.review.revisions import RevisionError

    try:
        yield
    except Exception as problem:
        from trainyard.review.costs import PricesError
        from trainyard.review.preview import PreviewError
        from trainyard.review.proof import RehearsalError

        if isinstance(problem, RevisionError | PricesError | PreviewError | RehearsalError | RecordingError):
            raise click.ClickException(str(problem)) from None
        raise


def _parse_date_option(text: str | None) -> date:
    try:
        return datetime.now(UTC).date() if text is None else date.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"--on: `{text}` is not a date; write it as 2026-11-26") from None


def _find_sides(
    until_the_end: ExitStack, named: Sequence[str], stacks: Path, against: str | None
) -> tuple[tuple[str, ...], Side, Side | None]:
    """The names of the stack files, and both sides."""
    from trainyard.review.revisions import checkout_revision, working_tree

    folders = {named_place(name, stacks)[1] for name in named if is_file_name(name)} or {stacks}
    if len(folders) > 1 or (folders != {stacks} and not all(map(is_file_name, named))):
        raise click.UsageError("stacks of several folders: review one folder at a time")
    folder = folders.pop()
    after = working_tree(folder)
    before = None if against is None else until_the_end.enter_context(checkout_revision(folder, against))
    return _chosen_file_names(named, folder, after, before), after, before


def _start_recorders(names: Sequence[str], after: Side, before: Side | None) -> Recorders:
    from trainyard.review.recorders import Recorders

    return Recorders(names, after, before)


def _revision_words(against: str | None, before: Side | None) -> str:
    """`main (89660b47a952)`. A commit needs no name beside it."""
    if against is None or before is None:
        return ""
    return before.commit if against.startswith(before.commit) else f"{against} ({before.commit})"


def _chosen_file_names(named: Sequence[str], folder: Path, after: Side, before: Side | None) -> tuple[str, ...]:
    there = {
        file.name
        for side in (after, before)
        if side is not None
        for file in side.stacks.glob("Pulumi.*.yaml")
        if file.is_file()
    }
    if not there and not folder.is_dir():
        raise click.UsageError(f"there is no folder {folder}: name another one with --stacks")
    if not there:
        raise click.UsageError(f"no Pulumi.*.yaml in {folder}/: name files, or another folder with --stacks")
    if not named:
        return tuple(sorted(there))
    names = [Path(name).name if is_file_name(name) else f"Pulumi.{name}.yaml" for name in named]
    for name in names:
        if name not in there:
            known = sorted(stack_name(Path(file)) for file in there)
            missing = stack_name(Path(name))
            raise click.UsageError(f"no stack `{missing}` in {folder}/: {suggest_name(missing, known)}")
    return tuple(dict.fromkeys(names))


def _read_pack_config(file: Path) -> Mapping[str, Any]:
    """Pulumi's engine ignores the settings of a rule that the pack does not have."""
    from policies.settings import PolicyConfigError, read_rule_settings

    try:
        value = json.loads(file.read_text("utf-8"))
    except OSError as problem:
        raise click.ClickException(f"{file}: {problem.strerror}") from None
    except (ValueError, RecursionError) as problem:
        raise click.ClickException(f"{file} is not JSON: {problem}") from None
    if not isinstance(value, dict):
        raise click.ClickException(f"{file} does not hold a JSON object")
    try:
        read_rule_settings(value)
    except PolicyConfigError as wrong:
        raise click.ClickException(f"{file}: {wrong}") from None
    return value


class _Progress:
    """A line on stderr, at most every two seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, text: str) -> None:
        if time.monotonic() - self._last >= _PATIENCE_SECONDS:
            self._last = time.monotonic()
            say_aside(text)


def _path_from_here(file: Path) -> str:
    """The path as people see it: relative, if it is below the current folder."""
    here = Path.cwd()
    whole = Path(os.path.abspath(file))
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else str(file)
