# SPDX-License-Identifier: Apache-2.0
"""Data of a local stack: what a stack file keeps stays, unless a person says otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from localstacks.place import Place


def let_go(place: Place) -> None:
    """Protection and retention end, in the state of this local stack; its file stays as it is."""
    exported = _exported(place)
    for row in _resources(exported):
        row.pop("protect", None)
        row.pop("retainOnDelete", None)
    with TemporaryDirectory() as folder:
        file = Path(folder, "state.json")
        file.write_text(json.dumps(exported))
        place.state("import", "--stack", place.stack, "--file", str(file))


def _exported(place: Place) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(place.state("export", "--stack", place.stack))
    return told


def _resources(exported: dict[str, Any]) -> list[dict[str, Any]]:
    return list((exported.get("deployment") or {}).get("resources") or ())
