# SPDX-License-Identifier: Apache-2.0
"""Reads both sides of a change from `pulumi preview --json --show-sames`, and resources from a state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog import engine_values
from components.platform.review import SECRET, UNKNOWN, ReviewedResource, Snapshot

_ROOT = "pulumi:pulumi:Stack"
_IGNORED_STEPS = frozenset({"read", "read-discard", "read-replacement", "refresh", "discard-replaced"})
_MAKE = "make it with: pulumi preview --json --show-sames"
# The preview's text for a secret.
_HIDDEN = "[secret]"
# The keys that identify the content of a file or an archive.
_IDENTIFYING = ("hash", "path")


class PreviewError(Exception):
    """The file is not a preview of this stack. The message is for the user."""


@dataclass(frozen=True, slots=True)
class Preview:
    """Both sides, and the engine's own reasons for replacements, by URN."""

    before: Snapshot
    after: Snapshot
    replaced: Mapping[str, tuple[str, ...]]


def read_preview(file: Path, name: str, platform: str, plan: Mapping[str, Any]) -> Preview:
    """`plan`: the plan of the stack file, which is not in the engine's output."""
    try:
        document = json.loads(file.read_text("utf-8"))
        all_steps = list(document["steps"])
    except OSError as problem:
        raise PreviewError(f"{file}: {problem.strerror}") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise PreviewError(f"{file} is not what `pulumi preview --json` writes; {_MAKE}") from None
    steps = [step for step in all_steps if isinstance(step, Mapping) and step.get("op") not in _IGNORED_STEPS]
    same = (document.get("changeSummary") or {}).get("same", 0)
    missing = same - sum(step.get("op") == "same" for step in steps)
    # The engine may or may not count the stack itself.
    if missing > 1:
        raise PreviewError(f"{file} leaves out {missing} resources that stay as they are; {_MAKE}")
    urns = [str(step.get("urn", "")).split(":") for step in steps]
    stacks = {parts[2] for parts in urns if len(parts) > 3}
    if stacks and name not in stacks:
        raise PreviewError(f"{file} is a preview of the stack {', '.join(sorted(stacks))}, not of {name}")
    before: dict[str, ReviewedResource] = {}
    after: dict[str, ReviewedResource] = {}
    replaced: dict[str, tuple[str, ...]] = {}
    for step in steps:
        urn, operation = str(step["urn"]), str(step.get("op"))
        old, new = step.get("oldState"), step.get("newState")
        if isinstance(old, Mapping) and isinstance(new, Mapping) and "replace" not in operation:
            # The engine prints the new state before it has an id. A resource that is changed in place keeps its id.
            new = {**new, "id": new.get("id") or old.get("id")}
        for side, state in ((before, old), (after, new)):
            if isinstance(state, Mapping) and state.get("type") != _ROOT:
                side[urn] = resource_of_state(urn, state)
        if "replace" in operation:
            paths = step.get("replaceReasons") or step.get("diffReasons") or ()
            replaced.setdefault(urn, tuple(map(str, paths)))
        if operation == "delete":
            after.pop(urn, None)
    remarks = tuple(
        str(remark.get("message", "")).strip()
        for remark in document.get("diagnostics") or ()
        if isinstance(remark, Mapping) and remark.get("severity") in ("warning", "error")
    )
    was = Snapshot(name, platform, {}, tuple(before[urn] for urn in sorted(before)))
    becomes = Snapshot(name, platform, plan, tuple(after[urn] for urn in sorted(after)), remarks)
    return Preview(was, becomes, replaced)


def resource_of_state(urn: str, state: Mapping[str, Any]) -> ReviewedResource:
    return ReviewedResource(
        type=str(state.get("type", "")),
        name=urn.rpartition("::")[2],
        urn=urn,
        parent=str(state.get("parent") or ""),
        inputs=plain_state_value(state.get("inputs") or {}),
        protect=bool(state.get("protect")),
        retain=bool(state.get("retainOnDelete")),
        aliases=tuple(map(str, state.get("aliases") or ())),
        id=str(state.get("id") or ""),
        custom=bool(state.get("custom", True)),
        provider=str(state.get("provider") or "").rpartition("::")[0],
    )


def plain_state_value(value: Any) -> Any:
    """A value of the engine, with SECRET and UNKNOWN in place of secrets and unknowns."""
    if isinstance(value, Mapping):
        kind = value.get(engine_values.SIGNATURE)
        if kind == engine_values.SECRET:
            return SECRET
        if kind is not None:
            return {key: item for key, item in value.items() if key in _IDENTIFYING}
        return {key: plain_state_value(item) for key, item in value.items() if not str(key).startswith("__")}
    if isinstance(value, list):
        return [plain_state_value(item) for item in value]
    if isinstance(value, str) and value in engine_values.UNKNOWNS:
        return UNKNOWN
    return SECRET if value == _HIDDEN else value
