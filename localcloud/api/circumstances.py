# SPDX-License-Identifier: Apache-2.0
"""Circumstances in which a call needs further permissions, because of what exists already.

A row decides one circumstance of the catalog. Those that depend on a reference are in catalog/references.toml.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from localcloud.api.finders import pushed_repository
from localcloud.api.operations import ApiCall

Circumstance = Callable[[ApiCall], bool]


def _object_is_there(call: ApiCall) -> bool:
    buckets = call.store.live("bucket", name=call.params["bucketName"])
    row = call.store.connection.execute(
        "SELECT 1 FROM objects WHERE bucket = ? AND name = ?",
        (buckets[0].id if buckets else "", call.params["objectName"]),
    ).fetchone()
    return bool(row)


def _repository_is_new(call: ApiCall) -> bool:
    body = call.json()
    name = pushed_repository(body.get("image") if isinstance(body, dict) else "")
    return not call.store.live("container-repository", name=name)


CIRCUMSTANCES: Mapping[tuple[str, str], Circumstance] = {
    ("PutObject", "new object"): lambda call: not _object_is_there(call),
    ("PutObject", "existing object"): _object_is_there,
    ("PushContainerImage", "new repository"): _repository_is_new,
}
