# SPDX-License-Identifier: Apache-2.0
"""Compares the resources of two snapshots: what is created, changed, replaced or removed, why, and what is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.plan.model import RUN_TYPE
from components.platform.inputs import with_defaults
from components.platform.replacing import TRIGGER
from components.platform.review import SECRET, UNKNOWN, Loss, ReviewedResource, ReviewPlatform, Snapshot
from trainyard.review.model import Change, ChangeKind, Forecast

_RUN_ENDS = Loss(
    "a live run ends, and its tries with it; it starts again as another run",
    "let it end first. `was:` keeps a run that was renamed",
)
# Types of resources that exist only in the state: providers, stacks, references to stacks.
_STATE_ONLY = "pulumi:"
_TRIGGER = "a resource that it depends on"


@dataclass(frozen=True, slots=True)
class ResourcePair:
    """A resource on both sides. Secrets in the inputs are replaced by digests, and ignored inputs are left out."""

    before: ReviewedResource
    after: ReviewedResource


def compare(
    before: Snapshot, after: Snapshot, platform: ReviewPlatform, by_engine: Mapping[str, tuple[str, ...]] | None = None
) -> tuple[Change, ...]:
    """`by_engine`: what a real preview replaces, by URN, with the reasons. None: replacements are computed here."""
    pairs, created, deleted = match(before, after)
    if by_engine is None:
        replaced = _replaced(pairs, platform)
    else:
        replaced = {pair.after.urn: (by_engine[pair.after.urn], "") for pair in pairs if pair.after.urn in by_engine}
    found = [Change("created", one.type, one.name, one.urn) for one in created]
    found += [_removed(one, platform) for one in deleted]
    for pair in pairs:
        if pair.after.urn in replaced:
            found.append(_replacement(pair, *replaced[pair.after.urn], platform))
        elif paths := tuple(sorted(set(differences(pair.before.inputs, pair.after.inputs)))):
            one = pair.after
            found.append(Change("changed", one.type, one.name, one.urn, paths))
    return tuple(sorted(found, key=lambda one: (one.type, one.name, one.kind)))


def forecast(side: Snapshot) -> Forecast:
    made = _made(side)
    blocks = tuple(sorted(called(one.type, one.name) for one in made if one.protect))
    return Forecast(blocks, tuple(sorted(called(one.type, one.name) for one in made if one.retain and not one.protect)))


def called(token: str, name: str) -> str:
    """A resource in words: `Vcn vcn`."""
    return f"{token.rpartition(':')[2]} {name}"


def match(
    before: Snapshot, after: Snapshot
) -> tuple[tuple[ResourcePair, ...], tuple[ReviewedResource, ...], tuple[ReviewedResource, ...]]:
    """Pairs, matched by URN and then by alias; resources that only `after` has; resources that only `before` has."""
    left = {one.urn: one for one in _made(before)}
    pairs: list[ResourcePair] = []
    created: list[ReviewedResource] = []
    for one in sorted(_made(after), key=lambda one: one.urn not in left):
        urn = next((urn for urn in (one.urn, *one.aliases) if urn in left), None)
        if urn is None:
            created.append(one)
        else:
            pairs.append(ResourcePair(_comparable(left.pop(urn), one.ignored), _comparable(one, one.ignored)))
    return tuple(pairs), tuple(created), tuple(left.values())


def _made(side: Snapshot) -> tuple[ReviewedResource, ...]:
    return tuple(one for one in side.resources if one.custom and not one.type.startswith(_STATE_ONLY))


def _comparable(one: ReviewedResource, ignored: tuple[str, ...]) -> ReviewedResource:
    inputs = _with_digests(one.inputs, "", one.secrets)
    for path in ignored:
        inputs = _dropped(inputs, path.split("."))
    return replace(one, inputs=with_defaults(inputs) if one.type == RUN_TYPE else inputs)


def _with_digests(value: Any, path: str, digests: Mapping[str, str]) -> Any:
    """The value with the digest of each secret, so that a changed secret shows."""
    if isinstance(value, Mapping):
        return {key: _with_digests(item, f"{path}.{key}" if path else key, digests) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_digests(item, f"{path}[{index}]", digests) for index, item in enumerate(value)]
    return f"{SECRET} {digests[path]}" if value == SECRET and path in digests else value


def _dropped(value: Any, path: list[str]) -> Any:
    if not isinstance(value, Mapping) or path[0] not in value:
        return value
    first, *rest = path
    if rest:
        return {**value, first: _dropped(value[first], rest)}
    return {key: item for key, item in value.items() if key != first}


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The paths at which two values differ, also inside JSON texts such as launch documents and policies."""
    if old == new:
        return
    old, new = _parsed(old), _parsed(new)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({**old, **new}):
            yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif old != new:
        yield path


def _parsed(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _replaced(pairs: tuple[ResourcePair, ...], platform: ReviewPlatform) -> dict[str, tuple[tuple[str, ...], str]]:
    """By URN: the inputs that force the replacement, and the resource that it follows. A replaced resource gets another
    id, which may replace the resources that refer to it."""
    replaced: dict[str, tuple[tuple[str, ...], str]] = {}
    new_ids: dict[str, str] = {}
    found = True
    while found:
        found = False
        for pair in pairs:
            if pair.after.urn in replaced:
                continue
            alone = _replacing(pair, platform)
            shown, follows = _with_new_ids(pair.after, new_ids)
            if paths := alone or _replacing(ResourcePair(pair.before, shown), platform):
                replaced[pair.after.urn] = (paths, "" if alone else follows)
                new_ids.update(_id_of(pair.after))
                found = True
    return replaced


def _id_of(one: ReviewedResource) -> dict[str, str]:
    """The resource's id, if the cloud chose it. An id that is also an input stays the same."""
    known = {str(value) for value in one.inputs.values() if isinstance(value, str)}
    return {one.id: called(one.type, one.name)} if one.id and one.id not in known else {}


def _with_new_ids(one: ReviewedResource, new_ids: Mapping[str, str]) -> tuple[ReviewedResource, str]:
    if not new_ids:
        return one, ""
    pattern = re.compile(
        "|".join(rf"(?<![\w-]){re.escape(known)}(?![\w-])" for known in sorted(new_ids, key=len)[::-1])
    )
    followed: list[str] = []

    def renew(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: renew(item) for key, item in value.items()}
        if isinstance(value, list):
            return [renew(item) for item in value]
        if isinstance(value, str) and (hit := pattern.search(value)):
            followed.append(new_ids[hit[0]])
            return pattern.sub(UNKNOWN, value)
        return value

    shown = replace(one, inputs=renew(one.inputs), trigger=renew(one.trigger))
    return shown, followed[0] if followed else ""


def _replacing(pair: ResourcePair, platform: ReviewPlatform) -> tuple[str, ...]:
    paths = platform.replacing_inputs(pair.before, pair.after)
    return tuple(_TRIGGER if path == TRIGGER else path for path in paths)


def _replacement(pair: ResourcePair, paths: tuple[str, ...], follows: str, platform: ReviewPlatform) -> Change:
    before, after = pair.before, pair.after
    kind: ChangeKind = "blocked" if before.protect else "replaced"
    return Change(kind, after.type, after.name, after.urn, paths, follows, _loss(before, platform))


def _removed(one: ReviewedResource, platform: ReviewPlatform) -> Change:
    kind: ChangeKind = "blocked" if one.protect else "kept" if one.retain else "deleted"
    return Change(kind, one.type, one.name, one.urn, loss=None if kind == "kept" else _loss(one, platform))


def _loss(one: ReviewedResource, platform: ReviewPlatform) -> Loss | None:
    return platform.loss(one) or (_RUN_ENDS if one.type == RUN_TYPE else None)
