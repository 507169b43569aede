# SPDX-License-Identifier: Apache-2.0
"""Compares the resources of two snapshots: what is created, changed, replaced or removed, why, and what is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from catalog.nested import map_values, walk_texts
from components.plan.model import RUN_TYPE
from components.platform.inputs import with_defaults, without_expects
from components.platform.replacing import TRIGGER
from components.platform.review import SECRET, UNKNOWN, Loss, ReviewedResource, ReviewPlatform, Snapshot
from trainyard.review.losses_in_place import find_loss_by_creation, find_loss_in_place
from trainyard.review.model import Change, ChangeKind, Forecast

_RUN_ENDS = Loss(
    "a live run ends, and its tries with it; it starts again as another run",
    "let it end first. `was:` keeps a run that was renamed",
)
# Types of resources that exist only in the state: providers, stacks, references to stacks.
_WORD = re.compile(r"[\w-]+")
_INDEX = re.compile(r"\[\d+\]")
_STATE_ONLY = "pulumi:"
_PROVIDERS = "pulumi:providers:"
_TRIGGER = "a resource that it depends on"


@dataclass(frozen=True, slots=True)
class ResourcePair:
    """A resource on both sides. Secrets in the inputs are replaced by digests, and ignored inputs are left out."""

    before: ReviewedResource
    after: ReviewedResource


def compare_snapshots(
    before: Snapshot, after: Snapshot, platform: ReviewPlatform, by_engine: Mapping[str, tuple[str, ...]] | None = None
) -> tuple[Change, ...]:
    """`by_engine`: what a real preview replaces, by URN, with the reasons. None: replacements are computed here."""
    pairs, created, deleted = match_resources(before, after)
    if by_engine is None:
        replaced = _find_replacements(pairs, platform)
    else:
        replaced = {pair.after.urn: (by_engine[pair.after.urn], "") for pair in pairs if pair.after.urn in by_engine}
    changes = [
        Change("created", made.type, made.name, made.urn, loss=find_loss_by_creation(made, created)) for made in created
    ]
    kind: ChangeKind
    for resource in deleted:
        kind = "blocked" if resource.protect else "kept" if resource.retain else "deleted"
        loss = None if kind == "kept" else _loss_of_resource(resource, platform)
        changes.append(Change(kind, resource.type, resource.name, resource.urn, loss=loss))
    for pair in pairs:
        resource = pair.after
        if resource.urn in replaced:
            kind = "blocked" if pair.before.protect else "replaced"
            loss = _loss_of_resource(pair.before, platform)
            changes.append(Change(kind, resource.type, resource.name, resource.urn, *replaced[resource.urn], loss))
            continue
        paths = tuple(sorted(set(find_differing_paths(pair.before.inputs, resource.inputs))))
        loss = find_loss_in_place(pair.before, resource)
        if paths or loss:
            changes.append(Change("changed", resource.type, resource.name, resource.urn, paths, loss=loss))
    return tuple(sorted(changes, key=lambda change: (change.type, change.name, change.kind)))


def forecast_destroy(side: Snapshot) -> Forecast:
    resources = _managed_resources(side)
    blocks = sorted(resource_title(resource.type, resource.name) for resource in resources if resource.protect)
    stays = sorted(
        resource_title(resource.type, resource.name)
        for resource in resources
        if resource.retain and not resource.protect
    )
    return Forecast(tuple(blocks), tuple(stays))


def resource_title(token: str, name: str) -> str:
    """A resource in words: `Vcn vcn`."""
    return f"{token.rpartition(':')[2]} {name}"


def match_resources(
    before: Snapshot, after: Snapshot, with_providers: bool = False
) -> tuple[tuple[ResourcePair, ...], tuple[ReviewedResource, ...], tuple[ReviewedResource, ...]]:
    """Pairs, matched by URN and then by alias; resources that only `after` has; resources that only `before` has."""
    unmatched = {resource.urn: resource for resource in _managed_resources(before, with_providers)}
    pairs: list[ResourcePair] = []
    created: list[ReviewedResource] = []
    for resource in sorted(
        _managed_resources(after, with_providers), key=lambda resource: resource.urn not in unmatched
    ):
        urn = next((urn for urn in (resource.urn, *resource.aliases) if urn in unmatched), None)
        if urn is None:
            created.append(resource)
        else:
            earlier = _comparable_resource(unmatched.pop(urn), resource.ignored)
            pairs.append(ResourcePair(earlier, _comparable_resource(resource, resource.ignored)))
    return tuple(pairs), tuple(created), tuple(unmatched.values())


def _managed_resources(side: Snapshot, with_providers: bool = False) -> tuple[ReviewedResource, ...]:
    return tuple(
        resource
        for resource in side.resources
        if resource.custom
        and (not resource.type.startswith(_STATE_ONLY) or (with_providers and resource.type.startswith(_PROVIDERS)))
    )


def _comparable_resource(resource: ReviewedResource, ignored: tuple[str, ...]) -> ReviewedResource:
    inputs: Any = _with_digests(resource.inputs, "", resource.secrets) if resource.secrets else resource.inputs
    for path in ignored:
        inputs = _without_path(inputs, path.split("."))
    return replace(resource, inputs=without_expects(with_defaults(inputs)) if resource.type == RUN_TYPE else inputs)


def _with_digests(value: Any, path: str, digests: Mapping[str, str]) -> Any:
    """The value with the digest of each secret, so that a changed secret shows."""
    if isinstance(value, Mapping):
        return {key: _with_digests(item, f"{path}.{key}" if path else key, digests) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_digests(item, f"{path}[{index}]", digests) for index, item in enumerate(value)]
    return f"{SECRET} {digests[path]}" if value == SECRET and path in digests else value


def _without_path(value: Any, path: list[str]) -> Any:
    if not isinstance(value, Mapping) or path[0] not in value:
        return value
    first, *rest = path
    if rest:
        return {**value, first: _without_path(value[first], rest)}
    return {key: item for key, item in value.items() if key != first}


def find_differing_paths(old: Any, new: Any) -> Iterator[str]:
    return (path for path, _, _ in find_differences(old, new))


def find_differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The paths at which two values differ, with both values, also inside JSON texts such as launch documents and
    policies."""
    if old == new:
        return
    then, now = _parse_json_object(old), _parse_json_object(new)
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for key in sorted({**then, **now}):
            yield from find_differences(then.get(key), now.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for index, (old_item, new_item) in enumerate(zip(then, now, strict=True)):
            yield from find_differences(old_item, new_item, f"{path}[{index}]")
    elif then != now:
        yield path, old, new


def without_indexes(path: str) -> str:
    """A path for people, whom indexes of lists do not help: `nodes[0].name` is `nodes.name`."""
    return _INDEX.sub("", path)


def _parse_json_object(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _find_replacements(
    pairs: tuple[ResourcePair, ...], platform: ReviewPlatform
) -> dict[str, tuple[tuple[str, ...], str]]:
    """By URN: the inputs that force the replacement, and the resource that it follows. A replaced resource gets another
    id, which may replace the resources that refer to it."""
    replaced: dict[str, tuple[tuple[str, ...], str]] = {}
    new_ids: dict[str, str] = {}
    words = {pair.after.urn: _words_of_inputs(pair.after) for pair in pairs}
    found = True
    while found:
        found = False
        for pair in pairs:
            resource = pair.after
            if resource.urn in replaced:
                continue
            alone = _replacing_paths(pair, platform)
            # With hundreds of replaced resources, only those ids are looked for whose words are all there.
            near = {
                known: title for known, title in new_ids.items() if words[resource.urn].issuperset(_words_of_id(known))
            }
            shown, follows = _with_replaced_ids(resource, near)
            paths = alone or _replacing_paths(ResourcePair(pair.before, shown), platform)
            if not paths:
                continue
            found = True
            replaced[resource.urn] = (paths, "" if alone else follows)
            # An id that is also an input was not chosen by the cloud, and stays the same.
            if resource.id and resource.id not in resource.inputs.values():
                new_ids[resource.id] = resource_title(resource.type, resource.name)
    return replaced


def _words_of_inputs(resource: ReviewedResource) -> frozenset[str]:
    return frozenset(word for text in walk_texts([resource.inputs, resource.trigger]) for word in _WORD.findall(text))


@lru_cache(maxsize=4096)
def _words_of_id(known: str) -> frozenset[str]:
    return frozenset(_WORD.findall(known))


def _with_replaced_ids(resource: ReviewedResource, new_ids: Mapping[str, str]) -> tuple[ReviewedResource, str]:
    if not new_ids:
        return resource, ""
    longest_first = sorted(new_ids, key=len)[::-1]
    pattern = re.compile("|".join(rf"(?<![\w-]){re.escape(known)}(?![\w-])" for known in longest_first))
    followed: list[str] = []

    def renew(part: Any) -> Any:
        if isinstance(part, str) and (hit := pattern.search(part)):
            followed.append(new_ids[hit[0]])
            return pattern.sub(UNKNOWN, part)
        return part

    shown = replace(resource, inputs=map_values(resource.inputs, renew), trigger=map_values(resource.trigger, renew))
    return shown, followed[0] if followed else ""


def _replacing_paths(pair: ResourcePair, platform: ReviewPlatform) -> tuple[str, ...]:
    paths = platform.replacing_inputs(pair.before, pair.after)
    return tuple(_TRIGGER if path == TRIGGER else path for path in paths)


def _loss_of_resource(resource: ReviewedResource, platform: ReviewPlatform) -> Loss | None:
    return platform.loss(resource) or (_RUN_ENDS if resource.type == RUN_TYPE else None)
