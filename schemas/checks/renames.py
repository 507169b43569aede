# SPDX-License-Identifier: Apache-2.0
"""Checks of `was:`, with which a renamed job, run or role keeps its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from schemas.checks.registry import Wrong, at, rule
from schemas.facts import Facts
from schemas.findings import Path
from schemas.model import Job, Role, Run, Stack


def _named(stack: Stack) -> Iterator[tuple[str, Path, Mapping[str, Job | Run | Role]]]:
    """Everything that can be renamed: the jobs, and the runs and roles of each."""
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
                    message = f"`{name}` is its present name, not a former one"
                    yield Wrong((*path, name, "was"), message, f"write the {kind}'s former name, or remove it")
                elif former in items:
                    message = f"another {kind} is called `{former}`: both would use the same records and bucket folder"
                    remedy = f"give the {kind} `{former}` another name, or remove `was` to start `{name}` afresh"
                    yield Wrong((*path, name, "was"), message, remedy)


@rule("TY831", "one former name is given twice")
def claimed_twice(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for kind, path, items in _named(stack):
        claims: dict[str, str] = {}
        for name, item in items.items():
            for former in item.was.names:
                first = claims.setdefault(former, name)
                if first != name:
                    message = f"the {kind} `{first}` was called `{former}` too: only one can continue its records"
                    yield Wrong((*path, name, "was"), message, "keep `was` where the records belong")
