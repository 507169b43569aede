# SPDX-License-Identifier: Apache-2.0
"""The file that `pulumi import --file` takes, from a stack's recorded program and the ids of what the cloud has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from components.platform.review import ReviewedResource, Snapshot


def import_file_text(snapshot: Snapshot, ids: Mapping[str, str], version: str) -> str:
    """`ids`: by URN. `version`: of the provider's package; without it, the engine would make a second provider, and
    the next preview would show every resource as changed."""
    by_urn = {resource.urn: resource for resource in snapshot.resources}
    kept = dict.fromkeys(urn for urn in by_urn if urn in ids)
    # Components first: their children name them.
    above: dict[str, ReviewedResource] = {}
    for urn in kept:
        parent = by_urn.get(by_urn[urn].parent)
        while parent is not None:
            above = {parent.urn: parent, **above}
            parent = by_urn.get(parent.parent)
    rows = [_import_row(resource, by_urn) | {"component": True} for resource in above.values()]
    rows += [_import_row(by_urn[urn], by_urn) | {"id": ids[urn], "version": version} for urn in kept]
    return json.dumps({"resources": rows}, indent=2) + "\n"


def _import_row(resource: ReviewedResource, by_urn: Mapping[str, ReviewedResource]) -> dict[str, Any]:
    row = {"type": resource.type, "name": _row_label(resource), "logicalName": resource.name}
    parent = by_urn.get(resource.parent)
    return row if parent is None else {**row, "parent": _row_label(parent)}


def _row_label(resource: ReviewedResource) -> str:
    """A name for the rows of the file: logical names alone are not unique."""
    return f"{resource.type.rpartition(':')[2]}-{resource.name}"
