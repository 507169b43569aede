# SPDX-License-Identifier: Apache-2.0
"""The summary at the end of `up`: addresses, the state of each run, and last the failures with their reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from catalog.platforms import require_capability
from components.plan.model import RUN_TYPE, Plan, RunPlan
from components.platform.calls import ProviderError, call_of
from components.platform.client import RunClients, Runs, Where
from components.platform.local import LocalPlatform, Row, lost_lines, own_lines, reporting_nodes
from components.platform.runs import TERMINAL, NodeRun
from components.platform.status import WantedRuns
from launcher.escaping import terminal_line, terminal_lines
from localcloud import admin, control
from provider.runs.starting import marks_of
from schemas.name_suggestions import count_noun
from schemas.source import read_source
from trainyard.cli.out import say, say_aside
from trainyard.cli.runs_text import dropped_lines
from trainyard.local.engine_events import EngineDiagnostic
from trainyard.local.environments import why_untrained
from trainyard.local.local_stack import LocalStack
from trainyard.local.places import own_command
from trainyard.local.stack_states import mark_runs_failed
from trainyard.runs.run_looks import RunReport, TrafficReader, runs_now
from trainyard.why.judge import known_cause

# Log lines shown for each node.
LAST_LINES = 4
# Lines read from the end of a node's log, to find the program's own among them.
_LINES_READ = 100
_NOT_READ = "(what it printed could not be read just now)"
_REACHED = "__reached"
_INDENT = " " * 13


def where_of_local_stack(
    place: LocalStack, cloud: control.Cloud, outputs: Callable[[], Mapping[str, Any]], profile: str | None = None
) -> Where:
    """The runs of a stack on the local cloud. `outputs` returns those of the stack, for platforms that need them."""
    config = read_source(place.local_file()).data["config"]

    def bucket() -> str:
        return str(outputs().get("bucket", ""))

    return Where(config, cloud, None, say_aside, profile, bucket, place.file.parent, TrafficReader(cloud))


@dataclass(frozen=True)
class RunAtEnd:
    """A run at the end of `up`. `waited`: this `up` waited for it. `marked`: the next `up` starts it again."""

    urn: str
    job: str
    name: str
    report: RunReport
    waited: bool
    marked: bool

    @property
    def failed(self) -> bool:
        return bool(self.report["state"] == "FAILED")

    @property
    def line(self) -> str:
        return f"  run      {self.job}/{self.name}: {self.report['state']}"


def run_rows(place: LocalStack) -> dict[str, Row]:
    """The runs in the stack's state, by their URNs."""
    return {row["urn"]: row for row in place.states()[0].made() if row["type"] == RUN_TYPE and not row.get("delete")}


def print_summary(
    place: LocalStack,
    plan: Plan,
    cloud: control.Cloud,
    before: Mapping[str, Row],
    done: tuple[int, list[EngineDiagnostic]],
) -> tuple[int, bool]:
    """Prints the summary. Returns the exit code, and whether only runs failed.

    `before`: the runs before this `up`. `done`: the exit code and the errors of the engine.
    """
    code, errors = done
    account = _Account(place, plan, cloud, require_capability(plan.platform, LocalPlatform), place.outputs())
    runs = account.runs(before)
    if code:
        say(f"\n`up` has failed, so the stack `{place.stack}` is not as its file says.")
    else:
        account.say_where()
    for run in runs:
        if not run.failed:
            account.say_run(run)
    account.print_unawaited()
    if any(run.report["state"] not in TERMINAL for run in runs):
        say(f"  watch    {place.command('runs watch')}")
    account.say_where_to_look()
    failed = [run for run in runs if run.failed]
    late = {run.urn for run in failed if run.waited and not run.marked}
    if late:
        mark_runs_failed(place, late)
    account.say_failed(failed, errors)
    of_runs = {run.urn for run in failed}
    if code:
        return code, bool(errors) and all(error.urn in of_runs for error in errors)
    return (1, True) if late else (0, False)


@dataclass(frozen=True)
class _Account:
    place: LocalStack
    plan: Plan
    cloud: control.Cloud
    platform: LocalPlatform
    outputs: Mapping[str, Any]

    def runs(self, before: Mapping[str, Row]) -> list[RunAtEnd]:
        rows = run_rows(self.place)
        jobs: dict[str, dict[str, Any]] = {}
        urns = {tuple(urn.rpartition("::")[2].split("/", 1)): urn for urn in rows}
        for (job, name), urn in urns.items():
            made = rows[urn]["outputs"]
            report = {"state": made.get("state", ""), "nodes": made.get("nodeRuns") or ()}
            jobs.setdefault(job, {"runs": {}})["runs"][name] = report
        return [
            self._at_end(urns[job, name], job, name, report, before, rows)
            for job, name, report in runs_now(
                {"jobs": jobs}, self._where(None), WantedRuns(self.place.stack), known_cause
            )
        ]

    def _where(self, profile: str | None) -> Where:
        return where_of_local_stack(self.place, self.cloud, lambda: self.outputs, profile)

    def _at_end(
        self, urn: str, job: str, name: str, report: RunReport, before: Mapping[str, Row], rows: Mapping[str, Row]
    ) -> RunAtEnd:
        marked = bool(marks_of(rows[urn]["outputs"]))
        return RunAtEnd(urn, job, name, report, _waited_for(before.get(urn), rows[urn]), marked)

    def say_where(self) -> None:
        say(f"\nThe stack `{self.place.stack}` is up on the local cloud at {self.cloud.endpoint}.")
        if unenforced := admin.why_not_enforced(self.cloud):
            say(f"  rules    not enforced between its nodes: {unenforced}")
        for key, title in self.platform.shown_outputs:
            if key in self.outputs:
                say(terminal_line(f"  {title:8} {self.outputs[key]}"))
        for machine in self.platform.machines(self.cloud, list(self.place.states()[0].made()), say_aside):
            say(terminal_line(f"  machine  {machine}"))

    def say_run(self, run: RunAtEnd) -> None:
        say(run.line)
        for line in self._printed(run):
            say(terminal_line(f"{_INDENT}{line}"))
        self._say_left(run)

    def print_unawaited(self) -> None:
        """Names jobs that `up` did not wait for only because of `until`. Other reasons were shown at the beginning."""
        for name, job in self.plan.jobs.items():
            unawaited = job.runs and all(run.until == "accepted" for run in job.runs.values())
            if unawaited and not why_untrained(job, self.place.file.parent):
                say(f"  job      {name}: `up` did not wait for its runs, because their `until` is `accepted`")

    def say_where_to_look(self) -> None:
        client, command = self.platform.client, own_command()
        say(f"  console  {self.cloud.endpoint}/console")
        say(f'  look     eval "$({command} cloud env)" and use {client}; {command} cloud log')

    def say_failed(self, failed: Sequence[RunAtEnd], errors: Sequence[EngineDiagnostic]) -> None:
        messages = {error.urn: error.message for error in errors}
        if failed:
            say(f"\n{count_noun(len(failed), 'run')} failed:")
        for run in failed:
            # Pulumi's error has the reason already.
            reason = "" if run.urn in messages else str(run.report.get("reason") or "")
            say(f"{run.line}{f': {terminal_line(reason)}' if reason else ''}")
            for line in terminal_lines(messages.get(run.urn) or "\n".join(self._words(run))).splitlines():
                say(f"{_INDENT}{line}")
            for line in dropped_lines(run.report["dropped"]):
                say(f"{_INDENT}{line}")
            self._say_left(run)
        others = [error for error in errors if error.urn not in {run.urn for run in failed}]
        if others:
            say(f"\nPulumi ended with {count_noun(len(others), 'error')}:")
        for error in others:
            say(terminal_line(f"  {error.title}"))
            for line in terminal_lines(error.message).splitlines():
                say(f"    {line}")

    def _words(self, run: RunAtEnd) -> Iterator[str]:
        """The lines for a failed run on which Pulumi has no error."""
        yield from self._printed(run)
        if run.waited or run.marked:
            yield "Correct the cause; the next `up` starts the run again."
        else:
            yield "This `up` did not wait for it. A higher `attempt`, or a change in what it runs, starts it again."

    def _plan_of(self, run: RunAtEnd) -> RunPlan | None:
        """The plan of a run. None if the stack file no longer has it, or if this machine cannot train it."""
        job = self.plan.jobs.get(run.job)
        if job is None or why_untrained(job, self.place.file.parent):
            return None
        return job.runs.get(run.name)

    def _printed(self, run: RunAtEnd) -> Iterator[str]:
        planned = self._plan_of(run)
        for node in reporting_nodes(planned, run.report["nodes"]) if planned else ():
            printed = self._last_lines(NodeRun(node["name"], node["id"], node["state"]))
            yield from (*own_lines(printed)[-LAST_LINES:], *lost_lines(printed))

    @cached_property
    def _client(self) -> Runs:
        return require_capability(self.plan.platform, RunClients).of_caller(self._where(admin.DEPLOYER))

    def _last_lines(self, node: NodeRun) -> list[str]:
        try:
            return self._client.last_lines(call_of("up", say_aside), node, _LINES_READ, patiently=False)
        except ProviderError:
            # A missing log does not make `up` fail.
            return [_NOT_READ]

    def _say_left(self, run: RunAtEnd) -> None:
        if planned := self._plan_of(run):
            nodes = run.report["nodes"]
            for line in self.platform.list_results(self.cloud, self.outputs, planned, nodes, say_aside):
                say(terminal_line(f"  left     {line}"))


def _waited_for(before: Row | None, now: Row) -> bool:
    """Whether this `up` started the run or continued it, and waited because of its `until`."""
    if now["inputs"].get("until") == "accepted":
        return False
    return before is None or any(
        before.get(key) != now.get(key) or before["outputs"].get(_REACHED) != now["outputs"].get(_REACHED)
        for key in ("id", "initErrors")
    )
