# SPDX-License-Identifier: Apache-2.0
"""A run with `each:` stands for one run for every combination of its values.

The key of such a run has these values: `sweep-bs-32-lr-0.1`. The names are in alphabetical order, because the engine
does not keep the order of a file. So a new value adds runs, and leaves the others unchanged.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

from schemas.model import EachValue, Job, Run, Stack

MOST_RUNS = 64
# The limit of a key, which is part of display names, tags and names of objects.
LONGEST_KEY = 100
REFERENCE = "each."
_IN_TEXT = re.compile(r"\$\{each\.([A-Za-z][A-Za-z0-9_-]*)\}")
_NOT_IN_KEY = re.compile(r"[^A-Za-z0-9._-]+")


def with_each(job: Job) -> Job:
    """The job with every combination as a run of its own."""
    if not any(run.each for run in job.runs.values()):
        return job
    return replace(job, runs={key: run for name, each in job.runs.items() for key, run in expand_run(name, each)})


def expand_run(name: str, run: Run) -> Iterator[tuple[str, Run]]:
    """The keys and runs that a run of the stack file stands for: itself, if it has no `each`."""
    if not run.each:
        yield name, run
        return
    for chosen in value_combinations(run):
        args = tuple(_fill_each_values(word, chosen) for word in run.args)
        env = {
            key: _fill_each_values(value, chosen) if isinstance(value, str) else value for key, value in run.env.items()
        }
        yield combination_key(name, chosen), replace(run, each={}, at_most=None, args=args, env=env)


def value_combinations(run: Run) -> Iterator[Mapping[str, str]]:
    """The values of every combination, as texts."""
    names = sorted(run.each)
    for values in itertools.product(*(run.each[name] for name in names)):
        yield dict(zip(names, map(each_value_text, values), strict=True))


def count_runs(run: Run) -> int:
    """The number of runs. It is computed without making the combinations, which may be far too many."""
    return math.prod(len(values) for values in run.each.values())


def live_at_once(run: Run) -> int:
    """The limit of this entry's simultaneous runs."""
    return min(count_runs(run), run.at_most or count_runs(run))


def turns_of(job: Job, key: str) -> tuple[int, str] | None:
    """For a run of a sweep with `atMost`: the limit of simultaneous runs, and the common prefix of their names."""
    for name, entry in job.runs.items():
        if entry.at_most is not None and entry.each and key in keys_of(name, entry):
            return entry.at_most, f"{combination_key(name, {})}-{_safe_key(min(entry.each))}-"
    return None


def keys_of(name: str, run: Run) -> list[str]:
    """The keys of an entry's runs. Empty if there are too many, which another check reports."""
    if count_runs(run) > MOST_RUNS:
        return []
    return [combination_key(name, chosen) for chosen in value_combinations(run)] if run.each else [name]


def swept_keys(jobs: Any, job: str, name: str) -> list[str]:
    """The keys of a sweep in an unchecked file, whose other parts may be wrong. Empty if it is not a sweep."""
    each = jobs
    for key in (job, "runs", name, "each"):
        each = each.get(key) if isinstance(each, Mapping) else None
    if not isinstance(each, Mapping) or not all(isinstance(values, list) for values in each.values()):
        return []
    values = {str(key): tuple(value for value in given if isinstance(value, EachValue)) for key, given in each.items()}
    return keys_of(name, Run(each=values)) if values else []


def combination_key(name: str, chosen: Mapping[str, str]) -> str:
    """The key of a combination. Characters other than letters, digits, `.`, `_` and `-` become hyphens, because the key
    names objects and resources."""
    parts = (name, *itertools.chain.from_iterable(chosen.items()))
    return "-".join(_safe_key(word) for word in parts)


def each_value_text(value: EachValue) -> str:
    """The value as text. 32 and 32.0 give the same text, because the engine does not distinguish them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def each_names_in(text: str) -> list[str]:
    """The names under `each` that a text refers to."""
    return _IN_TEXT.findall(text)


def without_each_references(text: str) -> str:
    """The text without references to values of `each`."""
    return _IN_TEXT.sub("", text)


def _safe_key(word: str) -> str:
    # `-1` keeps its sign: as a key, `lr--1` differs from `lr-1`.
    safe = _NOT_IN_KEY.sub("-", word)
    return safe if safe.strip(".-_") else "-"


def _fill_each_values(text: str, chosen: Mapping[str, str]) -> str:
    return _IN_TEXT.sub(lambda match: chosen.get(match[1], match[0]), text)


def addresses_needed(stack: Stack) -> int:
    """The most addresses in use: all jobs have as many simultaneous runs as they may have."""
    return stack.addresses({name: sum(map(live_at_once, job.runs.values())) for name, job in stack.jobs.items()})


def lies_outside(cidr: str, blocks: Sequence[str]) -> bool:
    """Whether a subnet of these addresses is outside of a network of these blocks. False if that is not known."""
    try:
        return bool(blocks) and not any(IPv4Network(cidr).subnet_of(IPv4Network(block)) for block in blocks)
    except ValueError:
        return False
