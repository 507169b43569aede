# SPDX-License-Identifier: Apache-2.0
"""Checks of `each:`, which makes one run for every combination of its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from schemas.checks.registry import Wrong, at, rule
from schemas.each import LONGEST_KEY, MOST_RUNS, count, keys_of, names_in, text_of
from schemas.facts import Facts
from schemas.findings import Path
from schemas.model import Job, Run, Stack
from schemas.names import listing, plural


def _each(stack: Stack) -> Iterator[tuple[Job, Path, str, Run]]:
    for name, job in stack.jobs.items():
        for run, one in job.runs.items():
            if one.each:
                yield job, at("jobs", name, "runs", run), run, one


@rule("TY860", "more runs than one `each` may make")
def too_many(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for _job, path, _run, one in _each(stack):
        if count(one) > MOST_RUNS:
            sizes = " x ".join(str(len(values)) for values in one.each.values())
            message = f"makes {sizes} = {count(one)} runs; at most {MOST_RUNS} are allowed"
            yield Wrong((*path, "each"), message, "shorten the lists, or split them into several stacks")


@rule("TY861", "an empty list of values")
def empty(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for _job, path, _run, one in _each(stack):
        for name, values in one.each.items():
            if not values:
                yield Wrong((*path, "each", name), f"`{name}` has no values, so there is no run", "add a value")


@rule("TY862", "two runs of one `each` with the same key")
def alike(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for job, path, run, one in _each(stack):
        for name, values in one.each.items():
            twice = [value for value, times in Counter(map(text_of, values)).items() if times > 1]
            if twice:
                yield Wrong((*path, "each", name), f"{listing(twice)} stands there more than once", "keep it once")
        keys = Counter(keys_of(run, one))
        doubled = [key for key, times in keys.items() if times > 1]
        if doubled and not _has_doubles(one):
            message = f"two combinations are spelled `{doubled[0]}`: only letters, digits, `.`, `_` and `-` are kept"
            yield Wrong((*path, "each"), message, "choose values that differ in these characters")
        others = {key for other, spec in job.runs.items() if other != run for key in keys_of(other, spec)}
        if both := sorted(others & set(keys)):
            yield Wrong((*path, "each"), f"another run of the job is called `{both[0]}` too", "rename one of the runs")


def _has_doubles(run: Run) -> bool:
    return any(len(set(map(text_of, values))) < len(values) for values in run.each.values())


@rule("TY863", "values that make the key of a run too long")
def too_long(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for _job, path, run, one in _each(stack):
        longest = max(keys_of(run, one), key=len, default="")
        if len(longest) > LONGEST_KEY:
            message = f"the key `{longest[:60]}…` has {plural(len(longest), 'character')}; {LONGEST_KEY} are allowed"
            yield Wrong((*path, "each"), message, "name long values in the script, and choose among them by short ones")


@rule("TY864", "a former name of several runs")
def former(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for _job, path, run, one in _each(stack):
        if one.was.names:
            message = f"`{run}` stands for {plural(count(one), 'run')}, which cannot all continue one run"
            yield Wrong((*path, "was"), message, "remove `was`, or give the run that continues it an entry of its own")


@rule("TY865", "a value that changes nothing", severity="warning")
def unused(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for _job, path, _run, one in _each(stack):
        texts = (*one.args, *(value for value in one.env.values() if isinstance(value, str)))
        used = {name for text in texts for name in names_in(text)}
        for name in one.each:
            if name not in used:
                message = f"no argument and no variable of the run uses `${{each.{name}}}`: its runs are all alike"
                yield Wrong((*path, "each", name), message, f"add it to `args`, or remove `{name}`")
