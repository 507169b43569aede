# SPDX-License-Identifier: Apache-2.0
"""The shapes that jobs and notebooks may have, from the catalog."""

from __future__ import annotations

from catalog.tables import table
from localcloud.api.http import Json, Reply
from localcloud.api.operations import ApiCall
from localcloud.api.paging import plain_page

# The catalog has no sizes for flexible shapes, because users choose them. This is the smallest.
_LEAST = {"vcpus": 2, "memory_gib": 1}
_SERIES = (("GPU", "NVIDIA_GPU"), ("Standard.E", "AMD_ROME"), ("Standard.A", "ARM"), ("", "INTEL_SKYLAKE"))


def list_(call: ApiCall) -> Reply:
    call.needed("compartmentId")
    name = call.query.get("name")
    shapes = [_shape(shape, row) for shape, row in table("shapes").items() if name in (None, shape)]
    page, headers = plain_page(shapes, call.query)
    return Reply(200, page, headers)


def _shape(name: str, row: Json) -> Json:
    size = {**_LEAST, **row}
    series = next(series for part, series in _SERIES if part in name)
    return {
        "name": name,
        "coreCount": size["vcpus"] // 2,
        "memoryInGBs": size["memory_gib"],
        "shapeSeries": series,
    }
