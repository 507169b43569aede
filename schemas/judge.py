# SPDX-License-Identifier: Apache-2.0
"""Loads and checks a stack in one step, for the commands and the Pulumi program."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

from catalog.platforms import platforms
from schemas.checks import check_meaning, checks_of, own_rules, shared_rules
from schemas.convert import camel_case
from schemas.facts import Facts, gather_facts
from schemas.findings import Finding, Severity, at
from schemas.findings import Path as KeyPath
from schemas.load import Loaded, SoundPart, load_config, load_file
from schemas.model import Stack
from schemas.name_suggestions import quoted_list
from schemas.source import Source, shape_titles

_JOBS = at("jobs")
_OF_A_JOB = len(_JOBS) + 1
# Findings about several stacks together (schemas/across_stacks.py): code -> title and severity.
OF_SEVERAL: dict[str, tuple[str, Severity]] = {
    "TY114": ("subnets of one network overlap", "warning"),
    "TY615": ("two stacks make the same resource", "warning"),
    "TY716": ("the stack under `uses` is on another platform, or in another region or account", "error"),
    "TY717": ("the stack under `uses` does not have what is taken", "error"),
    "TY718": ("stacks use one another in a circle", "error"),
    "TY719": ("the name under `uses` may be a typing mistake", "note"),
}


def sound_findings(sound: SoundPart, folder: Path, on: date | None = None) -> Iterator[Finding]:
    """The findings of checks, without those that depend on invalid values of the file."""
    facts, read = gather_facts(sound.stack, folder, on), set[KeyPath]()
    # A job's framework may be one of the team's own, whose file cannot be read here.
    unknown = {
        at("jobs", name, "framework")
        for name, job in sound.stack.jobs.items()
        if job.framework not in facts.framework_names()
    }
    has_own = any(place[:2] == at("frameworks") for place in sound.broken)
    broken = sound.broken | unknown if has_own else sound.broken
    # `watched` is the same stack, and records the places of `broken` that are read.
    of_jobs: dict[str, dict[str, KeyPath]] = {}
    of_stack: dict[str, KeyPath] = {}
    for place in broken:
        if place[: len(_JOBS)] == _JOBS and len(place) > _OF_A_JOB:
            of_jobs.setdefault(str(place[len(_JOBS)]), {})[str(place[_OF_A_JOB])] = place[: _OF_A_JOB + 1]
        elif len(place) > 1:
            of_stack[str(place[1]).rpartition(":")[2]] = place
    jobs = {name: _watched_value(job, of_jobs.get(name, {}), read) for name, job in sound.stack.jobs.items()}
    watched = _watched_value(replace(sound.stack, jobs=jobs), of_stack, read)
    for rule in checks_of(sound.stack.platform):
        read.clear()
        # The whole check runs first, because it may read one job's value for a finding about another job.
        found = [*rule.check(watched, facts)]
        for wrong in found:
            inside = any(wrong.path[: len(place)] == place for place in sound.broken)
            if not inside and not any(_may_depend_on(wrong.path, place) for place in read):
                yield Finding(rule.code, wrong.path, wrong.message, wrong.remedy, rule.severity)


def _may_depend_on(path: KeyPath, broken: KeyPath) -> bool:
    """Whether a finding at a path may depend on a broken place. A key of the whole stack may affect any finding; a key
    of a job only findings about that job or about several."""
    if broken[: len(_JOBS)] != _JOBS or len(broken) < _OF_A_JOB:
        return True
    return path[: len(_JOBS)] != _JOBS or len(path) < _OF_A_JOB or path[:_OF_A_JOB] == broken[:_OF_A_JOB]


def _watched_value(value: Any, places: Mapping[str, KeyPath], read: set[KeyPath]) -> Any:
    """A value of the model that records reads of its fields in `places` (keys of the file)."""
    model = type(value)
    columns = {
        column.name: places[camel_case(column.name)] for column in fields(model) if camel_case(column.name) in places
    }
    watching = {name: _recording_property(getattr(model, name), place, read) for name, place in columns.items()}
    if not watching:
        return value
    watched = type(model.__name__, (model,), {"__slots__": (), **watching})
    return watched(**{column.name: getattr(value, column.name) for column in fields(model)})


def _recording_property(slot: Any, place: KeyPath, read: set[KeyPath]) -> property:
    def get(self: Any) -> Any:
        read.add(place)
        return slot.__get__(self)

    return property(get, lambda self, value: slot.__set__(self, value))


def combine_jobs(findings: Iterable[Finding]) -> list[Finding]:
    """Combines equal findings about several jobs into one, at the place of the first. Other findings stay unchanged."""
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        of_a_job = finding.path[: len(_JOBS)] == _JOBS and len(finding.path) >= _OF_A_JOB
        cause = (finding.code, finding.message, finding.remedy, finding.path[_OF_A_JOB:]) if of_a_job else number
        groups.setdefault(cause, []).append(finding)
    combined = []
    for first, *rest in groups.values():
        names = dict.fromkeys(str(finding.path[len(_JOBS)]) for finding in rest)
        message = f"{first.message}; likewise {quoted_list(names)}" if names else first.message
        combined.append(replace(first, message=message))
    return combined


@dataclass(frozen=True, slots=True)
class Judged:
    """A stack with all its findings. `stack` and `facts` are None if the file's shape is wrong: then only its valid
    part was judged."""

    stack: Stack | None
    facts: Facts | None
    findings: tuple[Finding, ...]
    source: Source
    folder: Path

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")


def judge_file(file: Path, shown_as: str | None = None, on: date | None = None, folder: Path | None = None) -> Judged:
    """Loads and checks a file. Secrets stay opaque. Neither a cloud nor the engine is needed. `on`: None is today.
    `folder`: what its paths are relative to, if it is a copy."""
    loaded = load_file(file, shown_as)
    return _judge_loaded(replace(loaded, folder=folder) if folder is not None else loaded, on)


def judge_config(
    values: Mapping[str, str], secret_keys: Collection[str], name: str, file: Path | None = None
) -> Judged:
    """Loads and checks the configuration that Pulumi gives a program."""
    return _judge_loaded(load_config(values, secret_keys, name, file))


def _judge_loaded(loaded: Loaded, on: date | None = None) -> Judged:
    facts = gather_facts(loaded.stack, loaded.folder, on) if loaded.stack is not None else None
    about_meaning: Iterator[Finding] = iter(())
    if loaded.stack is not None and facts is not None:
        about_meaning = check_meaning(loaded.stack, facts)
    elif loaded.sound is not None:
        about_meaning = sound_findings(loaded.sound, loaded.folder, on)
    findings = [*loaded.findings, *map(loaded.located, about_meaning)]
    findings.sort(key=lambda finding: (finding.line, finding.column, finding.code))
    return Judged(loaded.stack, facts, tuple(combine_jobs(findings)), loaded.source, loaded.folder)


def titles_by_code() -> dict[str, str]:
    """Every code and its title, in order."""
    own = [shared_rules(), *map(own_rules, platforms())]
    meanings = {code: rule.title for each in own for code, rule in each.items()}
    several = {code: title for code, (title, _) in OF_SEVERAL.items()}
    return dict(sorted({**shape_titles(), **meanings, **several}.items(), key=lambda item: (len(item[0]), item[0])))
