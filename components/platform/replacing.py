# SPDX-License-Identifier: Apache-2.0
"""Which inputs replace a resource, by the rows of resource types. For reviews, which have no engine."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from components.plan.model import RUN_TYPE
from components.platform.inputs import mutable_inputs
from components.platform.values import DiffRules, compare_inputs, is_touched
from components.values.resource_types import ResourceType, find_resource_type

if TYPE_CHECKING:
    from components.platform.review import ReviewedResource

TRIGGER = "replacementTrigger"
# Inputs whose keys users choose: there, a missing key is a change. In other inputs, the cloud fills in missing keys.
_MAPS = frozenset({
    "definedTags", "environmentVariables", "freeformTags", "metadata", "parameters", "securityAttributes", "tags",
    "tagsAll", "volumeTags",
})  # fmt: skip
# An input of every type that has it.
_REGION = "region"


def replacing_inputs(before: ReviewedResource, after: ReviewedResource) -> tuple[str, ...]:
    """The changed paths that replace the resource. For a secret, the encrypted text in the file is compared."""
    old, new = dict(before.inputs), _with_ignored(before.inputs, after)
    row = find_resource_type(after.type) or ResourceType(token=after.type)
    replace = {*row.replaced_by, *after.replaced_for, _REGION}
    if after.type.startswith("trainyard:"):
        kept = mutable_inputs(new.get("platform")) if after.type == RUN_TYPE else frozenset[str]()
        replace |= {key for key in {*old, *new} - kept if not key.startswith("__")}
    if {name for name in row.one_of if old.get(name) is not None} != {
        name for name in row.one_of if new.get(name) is not None
    }:
        replace |= row.one_of
    rules = DiffRules(frozenset(replace), row.computed, row.unordered, maps=_MAPS)
    paths = list(compare_inputs(old, new, rules).replaces)
    secret = {path for path in {*before.secrets, *after.secrets} if before.secrets.get(path) != after.secrets.get(path)}
    paths += sorted(path for path in secret if is_touched(path, rules.replace) and path not in paths)
    if before.trigger and before.trigger != after.trigger:
        paths.append(TRIGGER)
    return tuple(paths)


def _with_ignored(before: Mapping[str, Any], after: ReviewedResource) -> dict[str, Any]:
    """The new inputs, with the old values of inputs whose changes the engine ignores (`ignoreChanges`)."""
    new = deepcopy(dict(after.inputs))
    for path in after.ignored:
        *above, last = path.split(".")
        source: Any = before
        holder: Any = new
        for step in above:
            source = source.get(step, {}) if isinstance(source, Mapping) else {}
            holder = holder.setdefault(step, {}) if isinstance(holder, dict) else {}
        if not isinstance(holder, dict):
            continue
        if isinstance(source, Mapping) and last in source:
            holder[last] = source[last]
        else:
            holder.pop(last, None)
    return new
