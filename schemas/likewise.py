# SPDX-License-Identifier: Apache-2.0
"""One finding a cause: what is wrong with several jobs in the same words is said once, with the names of the jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from schemas.checks.registry import at
from schemas.findings import Finding
from schemas.names import listing

_JOBS = at("jobs")
_DEPTH = len(_JOBS) + 1


def said_once(findings: Iterable[Finding]) -> list[Finding]:
    """In the order of the first ones. A finding about one job stays as it is."""
    groups: dict[object, list[Finding]] = {}
    for number, one in enumerate(findings):
        of_a_job = one.path[: len(_JOBS)] == _JOBS and len(one.path) >= _DEPTH
        cause = (one.code, one.message, one.remedy, one.path[_DEPTH:]) if of_a_job else number
        groups.setdefault(cause, []).append(one)
    return [_with_names(first, rest) for first, *rest in groups.values()]


def _with_names(first: Finding, rest: list[Finding]) -> Finding:
    names = dict.fromkeys(str(one.path[_DEPTH - 1]) for one in rest)
    return replace(first, message=f"{first.message}; likewise {listing(names)}") if names else first
