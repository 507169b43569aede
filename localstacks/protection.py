# SPDX-License-Identifier: Apache-2.0
"""Ends the protection of a local stack's data, when a person asks `down` to delete it."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from localstacks.place import Place


def end_protection(place: Place) -> None:
    """End protection and retention in the state of this local stack. Its stack file does not change."""
    exported = _exported(place)
    for row in _resources(exported):
        row.pop("protect", None)
        row.pop("retainOnDelete", None)
    with TemporaryDirectory() as folder:
        file = Path(folder, "state.json")
        file.write_text(json.dumps(exported))
        place.state("import", "--stack", place.stack, "--file", str(file))


def _exported(place: Place) -> dict[str, Any]:
    exported: dict[str, Any] = json.loads(place.state("export", "--stack", place.stack))
    return exported


def _resources(exported: dict[str, Any]) -> list[dict[str, Any]]:
    return list((exported.get("deployment") or {}).get("resources") or ())
