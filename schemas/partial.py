# SPDX-License-Identifier: Apache-2.0
"""Judges what is sound of a file whose shape is wrong, so that people see every mistake at once.

A finding that rests on a value which the file does not have would be noise. Each check is watched: where it reads such
a value, what it says about the same job or about the whole stack is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path as FilePath
from typing import Any

from schemas.checks import checks_of
from schemas.checks.registry import at
from schemas.convert import camel
from schemas.facts import Facts, gather
from schemas.findings import Finding, Path
from schemas.load import SoundPart
from schemas.model import Stack

_JOBS = at("jobs")
_OF_A_JOB = len(_JOBS) + 1


def sound_findings(sound: SoundPart, folder: FilePath) -> Iterator[Finding]:
    """What the checks say, without what rests on values that the file does not have."""
    facts, read = gather(sound.stack, folder), set[Path]()
    watched = _watched_stack(sound.stack, sound.broken | _unknown_frameworks(sound, facts), read)
    for rule in checks_of(sound.stack.platform):
        read.clear()
        # All of it before anything is judged: a check may read one job's value for another job's finding.
        found = [*rule.check(watched, facts)]
        for wrong in found:
            inside = any(wrong.path[: len(place)] == place for place in sound.broken)
            if not inside and not any(_is_about(wrong.path, place) for place in read):
                yield Finding(rule.code, wrong.path, wrong.message, wrong.remedy, rule.severity)


def _unknown_frameworks(sound: SoundPart, facts: Facts) -> set[Path]:
    """A job's framework may be one of the team's own, which nobody can read here."""
    if not any(place[:2] == at("frameworks") for place in sound.broken):
        return set()
    known = facts.framework_names()
    return {at("jobs", name, "framework") for name, job in sound.stack.jobs.items() if job.framework not in known}


def _is_about(path: Path, broken: Path) -> bool:
    """Whether a finding at a path may rest on a broken place: any finding on a key of the whole stack, and on a key
    of a job those about that job or about several."""
    if broken[: len(_JOBS)] != _JOBS or len(broken) < _OF_A_JOB:
        return True
    return path[: len(_JOBS)] != _JOBS or len(path) < _OF_A_JOB or path[:_OF_A_JOB] == broken[:_OF_A_JOB]


def _watched_stack(stack: Stack, broken: frozenset[Path], read: set[Path]) -> Any:
    """The same stack, which notes the places of `broken` that are read."""
    of_jobs: dict[str, dict[str, Path]] = {}
    of_stack: dict[str, Path] = {}
    for place in broken:
        if place[: len(_JOBS)] == _JOBS and len(place) > _OF_A_JOB:
            of_jobs.setdefault(str(place[len(_JOBS)]), {})[str(place[_OF_A_JOB])] = place[: _OF_A_JOB + 1]
        elif len(place) > 1:
            of_stack[str(place[1]).rpartition(":")[2]] = place
    jobs = {name: _watched(job, of_jobs.get(name, {}), read) for name, job in stack.jobs.items()}
    return _watched(replace(stack, jobs=jobs), of_stack, read)


def _watched(value: Any, places: Mapping[str, Path], read: set[Path]) -> Any:
    """A value of the model whose columns in `places` (keys of the file) note that they are read."""
    kind = type(value)
    columns = {column.name: places[camel(column.name)] for column in fields(kind) if camel(column.name) in places}
    watching = {name: _noting(getattr(kind, name), place, read) for name, place in columns.items()}
    if not watching:
        return value
    made = type(kind.__name__, (kind,), {"__slots__": (), **watching})
    return made(**{column.name: getattr(value, column.name) for column in fields(kind)})


def _noting(slot: Any, place: Path, read: set[Path]) -> property:
    def get(self: Any) -> Any:
        read.add(place)
        return slot.__get__(self)

    return property(get, lambda self, value: slot.__set__(self, value))
