# SPDX-License-Identifier: Apache-2.0
"""What is lost when a resource is deleted. A platform's rows say it for each type: `words` for the loss, `avoid` for
how to avoid it, and `called` for the inputs that name the resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.tables import table
from components.platform.review import Loss, ReviewedResource

_NAME = "{name}"


def loss_of(resource: ReviewedResource, rows: Mapping[str, Mapping[str, Any]]) -> Loss | None:
    """None if nothing is lost: the type has no row, or Pulumi retains the resource in the cloud."""
    row = rows.get(resource.type) or table("review")["loss"].get(resource.type)
    if row is None or resource.retain:
        return None
    called = (resource.inputs.get(key) for key in row.get("called", ()))
    name = f"`{next((one for one in called if isinstance(one, str) and one), resource.name)}`"
    # Not `format`: a name may have braces of its own.
    return Loss(row["words"].replace(_NAME, name), row.get("avoid", "").replace(_NAME, name))
