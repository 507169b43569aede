# SPDX-License-Identifier: Apache-2.0
"""Edits the state of a local stack, where no engine does it: ends the protection of data, marks failed runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from provider.runs.starting_again import FAILED
from trainyard.local.place import Place


def end_protection(place: Place) -> None:
    """End protection and retention in the state of this local stack, when a person asks `down` to delete its data. Its
    stack file does not change."""

    def unprotect(row: dict[str, Any]) -> None:
        row.pop("protect", None)
        row.pop("retainOnDelete", None)

    _edit(place, unprotect)


def mark_failed(place: Place, urns: Collection[str]) -> None:
    """Mark runs that failed during an `up`, but after it had waited for them: the provider saw nothing of it."""

    def mark(row: dict[str, Any]) -> None:
        if row["urn"] in urns and not row.get("delete"):
            row["outputs"][FAILED] = True

    _edit(place, mark)


def _edit(place: Place, change: Callable[[dict[str, Any]], None]) -> None:
    exported = json.loads(place.state("export", "--stack", place.stack))
    for row in (exported.get("deployment") or {}).get("resources") or ():
        change(row)
    with TemporaryDirectory() as folder:
        file = Path(folder, "state.json")
        file.write_text(json.dumps(exported))
        place.state("import", "--stack", place.stack, "--file", str(file))
