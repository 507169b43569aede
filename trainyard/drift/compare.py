# SPDX-License-Identifier: Apache-2.0
"""Compares what a stack declared with what its cloud has, and makes a remark of each difference."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from catalog.secret_looks import holds_secret, names_secret
from components.platform.live import LiveSide
from components.platform.review import SECRET, Network, Passage, ReviewedResource, ReviewPlatform, Snapshot
from components.platform.runs import TERMINAL
from components.platform.status import RunStatus
from trainyard.review import reach
from trainyard.review.access_changes import compare_abilities

# In the order of the output: access that somebody may have gained comes first.
KINDS = ("opens", "closes", "gains", "loses", "undeclared", "gone", "changed", "run")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST = 300
_CANCELED = "CANCELED"
_STARTS_AGAIN = "a higher `attempt` starts it again"
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Remark:
    """One difference. `resource`: the URN, if the remark is about one resource."""

    kind: str
    words: str
    resource: str = ""


@dataclass(frozen=True)
class Drift:
    """`unread`: the parts that could not be compared, and why."""

    stack: str
    platform: str
    remarks: tuple[Remark, ...]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class EffectDifferences:
    """The differences in what rules and statements allow. `judged`: whether the platform can evaluate them."""

    remarks: tuple[Remark, ...]
    judged: bool
    unread: tuple[str, ...] = ()


def compare_resources(side: LiveSide, effects: EffectDifferences) -> Iterator[Remark]:
    """Yields all differences except those of runs."""
    yield from effects.remarks
    live = {resource.urn: resource for resource in side.snapshot.resources}
    for urn, words in side.undeclared.items():
        if words:
            yield Remark("undeclared", words, urn)
    judged = side.judged if effects.judged else {}
    for resource in side.declared.resources:
        if resource.urn not in live:
            yield Remark("gone", f"{drift_title(resource)} is gone", resource.urn)
            continue
        declared, now = resource.inputs, live[resource.urn].inputs
        for key in sorted({*declared, *now} - judged.get(resource.type, frozenset())):
            for path, before, after in _differing_leaves(key, declared.get(key, _NOTHING), now.get(key, _NOTHING)):
                yield Remark(
                    "changed", f"{drift_title(resource)}: {path}: {_change_words(path, before, after)}", resource.urn
                )


def compare_effects(review: ReviewPlatform, declared: Snapshot, live: Snapshot) -> EffectDifferences:
    """Compares what rules and statements allow, as `trainyard review` does and in the same words."""
    before, after = review.network(declared), review.network(live)
    reached = reach.compare_networks(before, after)
    remarks = [Remark("opens", _reach_words(passage, after)) for passage in reached.opened]
    remarks += [Remark("opens", way) for way in reached.ways_opened]
    remarks += [Remark("closes", _reach_words(passage, before)) for passage in reached.closed]
    remarks += [Remark("closes", way) for way in reached.ways_closed]
    abilities_before, abilities_now = review.abilities((declared, live))
    for change in compare_abilities(abilities_before, abilities_now, review):
        remarks.append(Remark("gains" if change.gained else "loses", change.sentence))
    # If the declared network could not be judged either, it belongs to another stack, which has its own drift.
    unread = (f"the network: {after.unjudged}",) if after.unjudged and not before.unjudged else ()
    return EffectDifferences(tuple(remarks), True, unread)


def _reach_words(passage: Passage, network: Network) -> str:
    outside = "; that is outside of the stack's network" if reach.is_outside(passage, network) else ""
    return f"{reach.passage_words(passage)}{outside}"


def compare_runs(declared: Mapping[tuple[str, str], str], seen: Iterable[RunStatus]) -> Iterator[Remark]:
    """Yields declared runs that do not exist any more, or that somebody cancelled. Undeclared runs are tries."""
    there = {(run.job, run.name): run for run in seen}
    for (job, name), state in sorted(declared.items()):
        run = there.get((job, name))
        if run is None:
            yield Remark("run", f"run {job}/{name}: no start of it exists any more; {_STARTS_AGAIN}")
        elif state != _CANCELED and any(node.run.state == _CANCELED for node in run.nodes):
            was = f"{state} at the last `up`" if state in TERMINAL else "running at the last `up`"
            yield Remark("run", f"run {job}/{name} was cancelled; it was {was}; {_STARTS_AGAIN}")


def in_order(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    return tuple(sorted(dict.fromkeys(remarks), key=lambda remark: KINDS.index(remark.kind)))


def drift_title(resource: ReviewedResource) -> str:
    """`security list demo-local-rules`."""
    kind = _HUMPS.sub(" ", resource.type.rpartition(":")[2]).lower()
    names = ("displayName", "name", "bucket", "secretName")
    name = next((str(resource.inputs[key]) for key in names if resource.inputs.get(key)), resource.name)
    return f"{kind} {name}"


def _differing_leaves(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if before == after:
        return
    maps = isinstance(before, Mapping) and isinstance(after, Mapping)
    if maps and not path.endswith("nvironmentVariables"):
        for key in sorted({*before, *after}):
            yield from _differing_leaves(f"{path}.{key}", before.get(key, _NOTHING), after.get(key, _NOTHING))
    else:
        yield path, before, after


def _change_words(path: str, before: Any, after: Any) -> str:
    """The difference in words. For lists and policy documents only the changed items: a policy may have many."""
    with suppress(ValueError, KeyError, TypeError):  # Most values are not policy documents.
        statements = [json.loads(text)["Statement"] for text in (before, after)]
        before, after = (rows if isinstance(rows, list) else [rows] for rows in statements)
    if SECRET in (before, after):
        return "another value" if _NOTHING not in (before, after) else "a secret was added or removed"
    if not (isinstance(before, list) and isinstance(after, list)):
        return f"{_shown_value(path, before)}, now {_shown_value(path, after)}"
    removed = [f"without {_shown_value(path, item)}" for item in before if item not in after]
    parts = [*removed, *(f"with {_shown_value(path, item)}" for item in after if item not in before)]
    return "; ".join(("now " + parts[0], *parts[1:])) if parts else "now in another order"


def _shown_value(path: str, value: Any) -> str:
    if value is _NOTHING or value is None:
        return "nothing"
    value = _mask_secrets(path.rpartition(".")[2], value)
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _mask_secrets(name: str, value: Any) -> Any:
    """The value with possible secrets masked. Variables of a job are always masked."""
    if isinstance(value, Mapping) and not name.endswith("nvironmentVariables"):
        return {key: _mask_secrets(str(key), item) for key, item in value.items()}
    if isinstance(value, list):
        return [_mask_secrets(name, item) for item in value]
    text = str(value)
    hidden = name.endswith("nvironmentVariables") or names_secret(_HUMPS.sub("_", name), text) or holds_secret(text)
    return SECRET if hidden else value
