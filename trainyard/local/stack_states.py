# SPDX-License-Identifier: Apache-2.0
"""Reads and edits the states of local stacks: finds probable renamings without `was:`, and stacks that depend on
resources that will be removed.

Only the state shows what will be removed, so it is read before the engine runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from components.plan.model import RUN_TYPE, JobPlan, Plan
from components.platform.local import LocalPlatform, Row, State
from provider.runs.starting import FAILED
from schemas.name_suggestions import count_noun
from trainyard.local.local_stack import LocalStack

_REFERENCE = "pulumi:pulumi:StackReference"
_OUTPUTS = "outputs"
_MOST_NAMED = 10


@dataclass(frozen=True)
class Renamed:
    """Names of jobs, runs or roles: `gone` are only in the state, `new` only in the stack file."""

    gone: tuple[str, ...]
    new: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.gone and self.new)


def rename_warnings(rows: Sequence[Row], plan: Plan, platform: LocalPlatform) -> Iterator[str]:
    """Warnings: what a renaming without `was:` would lose, and how to keep it."""
    before = {_name_in_urn(row) for row in rows if row["type"] == platform.job_type}
    runs = {_name_in_urn(row): row for row in rows if row["type"] == RUN_TYPE}
    jobs = _find_renamed(before, {name: job.was for name, job in plan.jobs.items()})
    for name in jobs.gone if jobs else ():
        lost = platform.lost_with_job(sum(key.startswith(f"{name}/") for key in runs))
        yield (
            f"job {name} is not in the stack file any more, and {', '.join(jobs.new)} "
            f"{_is_or_are(jobs.new)} new: if it was renamed, {lost}, and they are trained anew, in another folder of "
            f"the bucket, without the checkpoints of {name}.\n"
            f"    To continue with what it has: `was: {name}` under {_one_of_names(jobs.new)} in the stack file."
        )
    for name, job in plan.jobs.items():
        if was := next((former for former in (name, *job.was) if former in before), None):
            yield from _run_rename_warnings(name, was, job, runs)


def _run_rename_warnings(name: str, was: str, job: JobPlan, runs: Mapping[str, Row]) -> Iterator[str]:
    mine = {key.partition("/")[2]: row for key, row in runs.items() if key.startswith(f"{was}/")}
    renamed = _find_renamed(mine, {key: run.was for key, run in job.runs.items()})
    for key in renamed.gone if renamed else ():
        yield (
            f"run {name}/{key} is not in the stack file any more, and {', '.join(renamed.new)} "
            f"{_is_or_are(renamed.new)} new: if it was renamed, it is trained anew, in another folder of the bucket, "
            f"without the checkpoints of {key}.\n"
            f"    To continue with what it has: `was: {key}` under {_one_of_names(renamed.new)} in the stack file."
        )
    listed = (row["inputs"].get("nodes") for row in mine.values())
    nodes = [node for nodes in listed if isinstance(nodes, list) for node in nodes if isinstance(node, Mapping)]
    # A node with a secret in its environment is encrypted as a whole, and left out.
    before = {str(node["role"]) for node in nodes if isinstance(node.get("role"), str)}
    roles = _find_renamed(before, {role.name: (role.called,) for role in job.roles})
    for key in roles.gone if roles else ():
        yield (
            f"role {key} of job {name} is not in the stack file any more, and {', '.join(roles.new)} "
            f"{_is_or_are(roles.new)} new: if it was renamed, {count_noun(len(mine), 'run')} of the job "
            f"{_is_or_are(mine)} trained anew.\n"
            f"    To leave them as they are: `was: {key}` under {_one_of_names(roles.new)} in the stack file."
        )


def _find_renamed(before: Collection[str], now: Mapping[str, tuple[str, ...]]) -> Renamed:
    still_named = {former for name, was in now.items() for former in (name, *was)}
    new = (name for name, was in now.items() if not {name, *was} & set(before))
    return Renamed(tuple(sorted(set(before) - still_named)), tuple(new))


def _name_in_urn(row: Row) -> str:
    return str(row["urn"].rpartition("::")[2])


def _one_of_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def _is_or_are(names: Collection[str]) -> str:
    return "is" if len(names) == 1 else "are"


def end_protection(place: LocalStack) -> None:
    """Removes protection and retention in the state of this local stack, for a `down` that deletes its data. The stack
    file does not change."""

    def unprotect(row: dict[str, Any]) -> None:
        row.pop("protect", None)
        row.pop("retainOnDelete", None)

    _edit_state(place, unprotect)


def mark_runs_failed(place: LocalStack, urns: Collection[str]) -> None:
    """Marks runs as failed in the state. They failed during an `up` that no longer waited for them, so the provider did
    not notice."""

    def mark(row: dict[str, Any]) -> None:
        if row["urn"] in urns and not row.get("delete"):
            row["outputs"][FAILED] = True

    _edit_state(place, mark)


def _edit_state(place: LocalStack, change: Callable[[dict[str, Any]], None]) -> None:
    exported = json.loads(place.state("export", "--stack", place.stack))
    for row in (exported.get("deployment") or {}).get("resources") or ():
        change(row)
    with TemporaryDirectory() as folder:
        file = Path(folder, "state.json")
        file.write_text(json.dumps(exported))
        place.state("import", "--stack", place.stack, "--file", str(file))


@dataclass(frozen=True)
class DependentStack:
    """A stack, and the resources or outputs that it needs from another one."""

    state: State
    on: tuple[str, ...]

    def __str__(self) -> str:
        if self.on == (_OUTPUTS,):
            return "takes its outputs (`uses`)"
        more = len(self.on) - _MOST_NAMED
        return f"needs {', '.join(self.on[:_MOST_NAMED])}" + (f" and {more} more" if more > 0 else "")


def dependent_stacks(
    own: State, others: Sequence[State], going: Sequence[Row], platform: LocalPlatform
) -> list[DependentStack]:
    """The stacks among `others` that need a resource that is `going`, or the outputs of the stack `own`."""
    candidates = (
        DependentStack(other, tuple(_needed_of(own, other, going, platform))) for other in others if other is not own
    )
    return [dependent for dependent in candidates if dependent.on]


def _needed_of(own: State, other: State, going: Sequence[Row], platform: LocalPlatform) -> Iterator[str]:
    if any(row["type"] == _REFERENCE and _is_reference_to(row, own) for row in other.rows):
        yield _OUTPUTS
        return
    inputs = json.dumps([row.get("inputs") for row in other.made()])
    for row in going:
        if platform.is_named(row, own, other, inputs):
            yield platform.describe_resource(row)


def _is_reference_to(reference: Row, own: State) -> bool:
    """Whether a reference names the stack: as `organization/project/stack`, or by `stack` alone in its project."""
    *_, project, stack = f"{own.project}/{reference['inputs']['name']}".split("/")
    return (project, stack) == (own.project, own.stack)
