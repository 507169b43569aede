# SPDX-License-Identifier: Apache-2.0
"""Warns of a probable renaming without `was:`. Pulumi would remove the old resource and make a new one.

Only the state knows what will be removed, so this reads it before the engine runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.plan.model import JobPlan, Plan
from components.plan.naming import RUN_TYPE
from components.platform.local import LocalPlatform
from components.platform.states import Row
from schemas.names import plural


@dataclass(frozen=True)
class Renamed:
    """For one kind of thing: the names that only the state has, and those that only the stack file has."""

    gone: tuple[str, ...]
    new: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.gone and self.new)


def words(rows: Sequence[Row], plan: Plan, platform: LocalPlatform) -> Iterator[str]:
    """What a renaming without `was:` would lose, and how to keep it."""
    before = {_name(row) for row in rows if row["type"] == platform.job_type}
    runs = {_name(row): row for row in rows if row["type"] == RUN_TYPE}
    jobs = _renamed(before, {name: job.was for name, job in plan.jobs.items()})
    for name in jobs.gone if jobs else ():
        lost = platform.lost_with_job(sum(key.startswith(f"{name}/") for key in runs))
        yield _of_job(name, jobs.new, lost)
    for name, job in plan.jobs.items():
        if was := next((former for former in (name, *job.was) if former in before), None):
            yield from _of_runs(name, was, job, runs)


def _of_runs(name: str, was: str, job: JobPlan, runs: Mapping[str, Row]) -> Iterator[str]:
    mine = {key.partition("/")[2]: row for key, row in runs.items() if key.startswith(f"{was}/")}
    renamed = _renamed(mine, {key: run.was for key, run in job.runs.items()})
    for key in renamed.gone if renamed else ():
        yield (
            f"run {name}/{key} is not in the stack file any more, and {_listed(renamed.new)} {_is(renamed.new)} new: "
            "if it was renamed, it is trained anew, in another folder of the bucket, without the checkpoints of "
            f"{key}.\n"
            f"    To continue with what it has: `was: {key}` under {_one_of(renamed.new)} in the stack file."
        )
    roles = _renamed(_roles(mine.values()), {role.name: (role.called,) for role in job.roles})
    for key in roles.gone if roles else ():
        yield (
            f"role {key} of job {name} is not in the stack file any more, and {_listed(roles.new)} {_is(roles.new)} "
            f"new: if it was renamed, {plural(len(mine), 'run')} of the job {_are(mine)} trained anew.\n"
            f"    To leave them as they are: `was: {key}` under {_one_of(roles.new)} in the stack file."
        )


def _of_job(name: str, new: Sequence[str], lost: str) -> str:
    return (
        f"job {name} is not in the stack file any more, and {_listed(new)} {_is(new)} new: if it was renamed, "
        f"{lost}, and they are trained anew, in another folder of the bucket, without the checkpoints of {name}.\n"
        f"    To continue with what it has: `was: {name}` under {_one_of(new)} in the stack file."
    )


def _renamed(before: Collection[str], now: Mapping[str, tuple[str, ...]]) -> Renamed:
    kept = {former for name, was in now.items() for former in (name, *was)}
    new = (name for name, was in now.items() if not {name, *was} & set(before))
    return Renamed(tuple(sorted(set(before) - kept)), tuple(new))


def _roles(rows: Collection[Row]) -> set[str]:
    """As the nodes of the runs know them; a node whose environment is a secret is one as a whole in the state."""
    nodes = [node for row in rows for node in _list(row["inputs"].get("nodes")) if isinstance(node, Mapping)]
    return {str(node["role"]) for node in nodes if isinstance(node.get("role"), str)}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _name(row: Row) -> str:
    return str(row["urn"].rpartition("::")[2])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _one_of(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"one of {_listed(names)}"


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _are(runs: Collection[str]) -> str:
    return "is" if len(runs) == 1 else "are"
