# SPDX-License-Identifier: Apache-2.0
"""Checks of `was:`, by which a job, a run or a role that was renamed keeps what it had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from schemas.checks.registry import Wrong, at, rule
from schemas.facts import Facts
from schemas.findings import Path
from schemas.model import Job, Role, Run, Stack


def _named(stack: Stack) -> Iterator[tuple[str, Path, Mapping[str, Job | Run | Role]]]:
    """What has names that must differ: the jobs, and the runs and roles of each."""
    yield "job", at("jobs"), stack.jobs
    for name, job in stack.jobs.items():
        yield "run", at("jobs", name, "runs"), job.runs
        yield "role", at("jobs", name, "roles"), job.roles


@rule("TY830", "a former name that is still in use")
def still_there(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for kind, path, items in _named(stack):
        for name, item in items.items():
            for former in item.was.names:
                if former == name:
                    message = f"`{name}` cannot have been renamed from `{name}`"
                    yield Wrong((*path, name, "was"), message, f"name what the {kind} was called before, or remove it")
                elif former in items:
                    message = f"there is a {kind} `{former}`: both would have its records and its place in the bucket"
                    remedy = f"give the {kind} `{former}` another name, or remove `was` to begin `{name}` anew"
                    yield Wrong((*path, name, "was"), message, remedy)


@rule("TY831", "two that had one name before")
def claimed_twice(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for kind, path, items in _named(stack):
        claims: dict[str, str] = {}
        for name, item in items.items():
            for former in item.was.names:
                first = claims.setdefault(former, name)
                if first != name:
                    message = f"the {kind} `{first}` was `{former}` already; only one of them can go on from it"
                    yield Wrong((*path, name, "was"), message, "keep `was` where the records belong")
