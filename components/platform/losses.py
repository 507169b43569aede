# SPDX-License-Identifier: Apache-2.0
"""What goes with a resource, by a platform's rows: type -> `words`, `avoid`, and the inputs by which it is `called`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.tables import table
from components.platform.review import Loss, ReviewedResource

_NAME = "{name}"


def loss_of(resource: ReviewedResource, rows: Mapping[str, Mapping[str, Any]]) -> Loss | None:
    """None where nothing goes: of a type without a row, and of what Pulumi leaves in the cloud."""
    row = rows.get(resource.type) or table("review")["loss"].get(resource.type)
    if row is None or resource.retain:
        return None
    called = (resource.inputs.get(key) for key in row.get("called", ()))
    name = f"`{next((one for one in called if isinstance(one, str) and one), resource.name)}`"
    # Not `format`: a name may have braces of its own.
    return Loss(row["words"].replace(_NAME, name), row.get("avoid", "").replace(_NAME, name))
