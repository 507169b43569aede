# SPDX-License-Identifier: Apache-2.0
"""`trainyard runs outputs`: the files that runs left in the bucket."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from components.platform.calls import ProviderError, read_at_once
from components.platform.files import (
    FileProblemError,
    Store,
    StoredObject,
    StoreOpener,
    StoreRequest,
    TransferError,
    store_opener,
)
from components.platform.status import LONGEST_BYTES, RunStatus, parse_json
from launcher.escaping import terminal_line
from provider.runs.lost import LOCAL_ONLY, LOST, Lost, read_lost
from schemas.load import load_file
from schemas.name_suggestions import count_noun
from trainyard.cli.data import object_json, object_line
from trainyard.cli.out import print_json, say, say_aside
from trainyard.cli.run_selection import config_of
from trainyard.cli.transfers import end_with, size_words, transfer_progress
from trainyard.files.workers import TransferReport
from trainyard.runs.ranking import RESULT, start_id

if TYPE_CHECKING:
    from trainyard.cli.run_selection import RunSelection

# In the folder of a run's start (docs/contracts.md).
_OUTPUT = "output/"
# Beside the folders of its attempts.
_CHECKPOINTS = "checkpoints/"
# Limits of the search for results: files of a run, and runs at once.
_MOST_LISTED, _AT_ONCE = 2000, 8


@dataclass(frozen=True)
class RunOutput:
    """A run, and the prefix of its output files in the bucket. `many`: other attempts are shown too."""

    run: RunStatus
    store: Store
    prefix: str
    many: bool

    @property
    def address(self) -> str:
        return f"{self.store.address}/{self.prefix}"

    def files(self) -> Iterator[StoredObject]:
        return self.store.list(self.prefix)

    def checkpoints(self) -> tuple[str, Iterator[StoredObject]]:
        """The prefix of the run's checkpoints, which all its attempts share, and their objects."""
        # The prefix is <job>/<run>/<attempt>/<start>/output/.
        prefix = f"{self.prefix.rsplit('/', 4)[0]}/{_CHECKPOINTS}"
        return prefix, self.store.list(prefix)

    def path(self, item: StoredObject) -> str:
        """The path of a file below the target folder. The names of jobs and runs are untrusted too."""
        attempt = [str(self.run.attempt)] if self.many else []
        return "/".join([self.run.job, self.run.name, *attempt, item.name[len(self.prefix) :]])


def find_outputs(selection: RunSelection, purpose: str, history: bool) -> list[RunOutput]:
    """The outputs of the selected runs. Runs without a folder are reported."""
    found, refused, openers = [], list[str](), dict[str, StoreOpener]()
    for run in selection.runs(history=history):
        if run.folder is None:
            say_aside(
                f"{terminal_line(run.title)}: its folder is unknown, because its image does not contain the launcher"
            )
            continue
        try:
            found.append(_find_output(selection, run, run.folder, purpose, openers, history))
        except TransferError as error:
            if selection.wanted.stack:
                refused.append("\n".join([f"{terminal_line(run.title)}: {error}", *_lost_lines(run)]))
                continue
            # Other stacks may be on platforms whose files can be fetched.
            say_aside(f"{terminal_line(run.stack)} {terminal_line(run.title)}: {error}")
    if refused:
        raise TransferError("\n".join(refused))
    return found


def _find_output(
    selection: RunSelection, run: RunStatus, folder: str, purpose: str, openers: dict[str, StoreOpener], many: bool
) -> RunOutput:
    if run.stack not in openers:
        # Runs of several stacks may be on several platforms.
        file = selection.file_of(run.stack)
        where = replace(selection.where, config=config_of(file))
        stack = load_file(file).stack if file else None
        openers[run.stack] = store_opener(StoreRequest(purpose, where, stack))
    store, name = openers[run.stack].folder(folder)
    return RunOutput(run, store, f"{name}/{_OUTPUT}", many)


def read_results(selection: RunSelection, runs: Sequence[RunStatus]) -> dict[str, Mapping[str, Any]]:
    """The `result.json` of each run, by the id of its start. Files that cannot be read are reported once and left out:
    the progress that the run reported is used instead."""
    openers, refused = dict[str, StoreOpener](), list[str]()

    def read(output: RunOutput) -> Mapping[str, Any] | None:
        try:
            there = [
                item
                for item in islice(output.files(), _MOST_LISTED)
                if item.name.rpartition("/")[2] == RESULT and item.size <= LONGEST_BYTES
            ]
            # The one nearest to the top counts: ranks other than 0 have folders of their own.
            for item in sorted(there, key=lambda item: item.name.count("/")):
                sink = _Memory()
                output.store.read(item, 0, item.size, sink)
                document = parse_json(bytes(sink.content))
                if isinstance(document, Mapping):
                    return document
            return None
        except (TransferError, FileProblemError, ProviderError) as error:
            refused.append(str(error))
            return None

    outputs = []
    for run in runs:
        if run.folder is None:
            continue
        try:
            outputs.append(_find_output(selection, run, run.folder, "get", openers, False))
        except TransferError as error:
            refused.append(str(error))
    results = read_at_once(read, outputs, _AT_ONCE)
    if refused:
        say_aside(f"{RESULT} of {count_noun(len(refused), 'run')} is not read: {refused[0]}")
    return {start_id(output.run): result for output, result in zip(outputs, results, strict=True) if result}


@dataclass
class _Memory:
    """A `components.platform.files.Sink` in memory."""

    content: bytearray = field(default_factory=bytearray)

    def restart(self) -> None:
        self.content.clear()

    def take(self, block: bytes) -> None:
        self.content += block


def show_outputs(outputs: Sequence[RunOutput], form: str) -> None:
    """Lists the files of each run, and says how to fetch them."""
    if form == "json":
        print_json(json.dumps([_output_json(output) for output in outputs], indent=2))
        return
    fetchable = False
    for output in outputs:
        run = output.run
        going = "" if run.over else ", still going: what is there so far"
        say(f"{terminal_line(run.title)}  {run.state}{going}  {terminal_line(output.address)}")
        count = total = 0
        for item in output.files():
            say(f"  {object_line(item, item.name[len(output.prefix) :])}")
            count, total = count + 1, total + item.size
        say(f"  {count_noun(count, 'file')}, {size_words(total)}" if count else "  nothing there")
        # A storage of the local cluster is a folder of this machine: nothing is fetched from there.
        here = output.store.address.startswith("/")
        fetchable = fetchable or (count > 0 and not here)
        prefix, kept = output.checkpoints()
        if sizes := [item.size for item in kept]:
            where = terminal_line(f"{output.store.address}/{prefix}")
            say(f"  checkpoints: {count_noun(len(sizes), 'file')}, {size_words(sum(sizes))}, in {where}")
            if not here:
                say(f"  `trainyard data get {shlex.quote(run.stack)} {shlex.quote(prefix)} --to DIR` fetches them")
        for line in _lost_lines(run):
            say(line)
    if fetchable:
        say("The same command with `--to DIR` fetches them.")


def _lost_files(run: RunStatus, key: str = LOST) -> list[tuple[int, Lost]]:
    """By rank, the files of training that were not kept; with LOCAL_ONLY, those that a real cloud would lose."""
    found = [(node.rank, read_lost(node.launcher_status, key)) for node in run.nodes]
    return [(rank, lost) for rank, lost in found if lost is not None]


def _lost_lines(run: RunStatus) -> Iterator[str]:
    """The lost files in words, with the launcher's remedy."""
    fates = {LOST: "not kept", LOCAL_ONLY: "kept only on the local cloud"}
    for fate, rank, lost in ((fates[key], *row) for key in fates for row in _lost_files(run, key)):
        yield f"  {fate} of rank {rank}: {count_noun(lost.files, 'file')}, {size_words(lost.size)}"
        for entry in lost.largest:
            several = f" ({count_noun(entry.files, 'file')})" if entry.files > 1 else ""
            yield f"  {size_words(entry.size):>10}  {terminal_line(entry.name)}{several}: {terminal_line(entry.why)}"
        yield f"  {terminal_line(lost.remedy)}"


def fetch_outputs(outputs: Sequence[RunOutput], to: Path, overwrite: bool) -> None:
    """Fetches the files of each run into a folder of its own."""
    from trainyard.files.get import Get, WantedObject
    from trainyard.files.targets import open_target

    if not outputs:
        raise click.exceptions.Exit(1)
    report = TransferReport()
    with open_target(to) as place, transfer_progress(report, "Fetching"):
        for output in outputs:
            # Usually all runs use one store, but runs of one stack may use two.
            fetching = Get(output.store, place, report, overwrite)
            fetching.fetch(WantedObject(item, output.path(item)) for item in output.files())
    if not report.expected_bytes + report.moved + report.there + len(report.problems):
        say("These runs have left no files so far.")
    for output in outputs:
        lines = list(_lost_lines(output.run))
        for line in [terminal_line(output.run.title), *lines] if lines else ():
            say(line)
    if not report.expected_bytes + report.moved + report.there + len(report.problems):
        return
    end_with(report, "fetched", f"into {to}")


def _output_json(output: RunOutput) -> dict[str, object]:
    run = output.run
    files = [{**object_json(item), "name": item.name[len(output.prefix) :]} for item in output.files()]
    return {
        "stack": run.stack, "job": run.job, "run": run.name, "attempt": run.attempt, "state": run.state,
        "over": run.over, "where": output.address, "files": files,
        "notKept": [{"rank": rank, **asdict(lost)} for rank, lost in _lost_files(run)],
    }  # fmt: skip
