# SPDX-License-Identifier: Apache-2.0
"""Resources as the engine writes them, in a state and in a preview, as those of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog import engine_values
from components.platform.review import SECRET, UNKNOWN, ReviewedResource

# What a preview has in place of a secret, unless it was told to show them.
_HIDDEN = "[secret]"
# Of a file or an archive, what tells it from another one.
_TELLING = ("hash", "path")


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
    """A value of the engine, with the texts that stand for secrets and unknowns."""
    if isinstance(value, Mapping):
        kind = value.get(engine_values.SIGNATURE)
        if kind == engine_values.SECRET:
            return SECRET
        if kind is not None:
            return {key: item for key, item in value.items() if key in _TELLING}
        return {key: plain(item) for key, item in value.items() if not str(key).startswith("__")}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str) and value in engine_values.UNKNOWNS:
        return UNKNOWN
    return SECRET if value == _HIDDEN else value
