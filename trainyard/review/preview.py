# SPDX-License-Identifier: Apache-2.0
"""Reads both sides of a change from `pulumi preview --json --show-sames`, and resources from a state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
        steps = list(document["steps"])
    except OSError as problem:
        raise PreviewError(f"{file}: {problem.strerror}") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise PreviewError(f"{file} is not what `pulumi preview --json` writes; {_MAKE}") from None
    rows = [step for step in steps if isinstance(step, Mapping) and step.get("op") not in _IGNORED_STEPS]
    _require_whole(file, document, rows)
    _require_stack(file, rows, name)
    before, after, replaced = _sides(rows)
    remarks = tuple(_remarks(document.get("diagnostics") or ()))
    return Preview(Snapshot(name, platform, {}, before), Snapshot(name, platform, plan, after, remarks), replaced)


def _require_whole(file: Path, document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    counted = (document.get("changeSummary") or {}).get("same", 0)
    there = sum(row.get("op") == "same" for row in rows)
    # The engine may or may not count the stack itself.
    if counted > there + 1:
        raise PreviewError(f"{file} leaves out {counted - there} resources that stay as they are; {_MAKE}")


def _require_stack(file: Path, rows: Sequence[Mapping[str, Any]], name: str) -> None:
    stacks = {str(row.get("urn", "")).split(":")[2:3][0] for row in rows if str(row.get("urn", "")).count(":") > 2}
    if stacks and name not in stacks:
        raise PreviewError(f"{file} is a preview of the stack {', '.join(sorted(stacks))}, not of {name}")


def _sides(
    rows: Sequence[Mapping[str, Any]],
) -> tuple[tuple[ReviewedResource, ...], tuple[ReviewedResource, ...], dict[str, tuple[str, ...]]]:
    before: dict[str, ReviewedResource] = {}
    after: dict[str, ReviewedResource] = {}
    replaced: dict[str, tuple[str, ...]] = {}
    for row in rows:
        replaces = "replace" in str(row.get("op"))
        old, new = row.get("oldState"), row.get("newState")
        if isinstance(old, Mapping) and isinstance(new, Mapping) and not replaces:
            # The engine prints the new state before it has an id. A resource that is changed in place keeps its id.
            new = {**new, "id": new.get("id") or old.get("id")}
        for side, state in ((before, old), (after, new)):
            if isinstance(state, Mapping) and state.get("type") != _ROOT:
                side[str(row["urn"])] = resource_of(str(row["urn"]), state)
        if replaces:
            paths = row.get("replaceReasons") or row.get("diffReasons") or ()
            replaced.setdefault(str(row["urn"]), tuple(map(str, paths)))
        if str(row.get("op")) == "delete":
            after.pop(str(row["urn"]), None)
    return tuple(before[urn] for urn in sorted(before)), tuple(after[urn] for urn in sorted(after)), replaced


def _remarks(diagnostics: Sequence[Any]) -> list[str]:
    """The warnings and errors of the program and its providers."""
    rows = [one for one in diagnostics if isinstance(one, Mapping)]
    return [str(one.get("message", "")).strip() for one in rows if one.get("severity") in ("warning", "error")]


def resource_of(urn: str, state: Mapping[str, Any]) -> ReviewedResource:
    return ReviewedResource(
        type=str(state.get("type", "")),
        name=urn.rpartition("::")[2],
        urn=urn,
        parent=str(state.get("parent") or ""),
        inputs=plain(state.get("inputs") or {}),
        protect=bool(state.get("protect")),
        retain=bool(state.get("retainOnDelete")),
        aliases=tuple(map(str, state.get("aliases") or ())),
        id=str(state.get("id") or ""),
        custom=bool(state.get("custom", True)),
    )


def plain(value: Any) -> Any:
    """A value of the engine, with SECRET and UNKNOWN in place of secrets and unknowns."""
    if isinstance(value, Mapping):
        kind = value.get(engine_values.SIGNATURE)
        if kind == engine_values.SECRET:
            return SECRET
        if kind is not None:
            return {key: item for key, item in value.items() if key in _IDENTIFYING}
        return {key: plain(item) for key, item in value.items() if not str(key).startswith("__")}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str) and value in engine_values.UNKNOWNS:
        return UNKNOWN
    return SECRET if value == _HIDDEN else value
