# SPDX-License-Identifier: Apache-2.0
"""Buckets of a local stack, emptied before they go."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from components.aws_dl1.local.calls import ask, ask_if_there
from components.aws_dl1.local.sessions import DEPLOYER, region_of, session_of
from components.aws_dl1.local.types import BUCKET, name_of
from components.platform.calls import Tell
from components.platform.local_cloud import LocalCloud
from components.platform.states import Row


def empty_buckets(cloud: LocalCloud, going: Sequence[Row], tell: Tell) -> int:
    """Removes the objects of the buckets that are `going`; how many there were."""
    names = [name_of(row) for row in going if row["type"] == BUCKET]
    if not names:
        return 0
    client = session_of(cloud, DEPLOYER, region_of(going)).client("s3")
    return sum(empty(client, tell, name) for name in names)


def empty(client: Any, tell: Tell, bucket: str) -> int:
    """Removes every object in all its versions; how many there were. A bucket that is gone has none."""
    what, removed = f"Empty the bucket {bucket}", 0
    while page := ask_if_there(tell, what, partial(client.list_object_versions, Bucket=bucket, MaxKeys=1000)):
        rows = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        if not rows:
            break
        objects = [{"Key": row["Key"], "VersionId": row["VersionId"]} for row in rows]
        ask(tell, what, partial(client.delete_objects, Bucket=bucket, Delete={"Objects": objects, "Quiet": True}))
        removed += len(rows)
    return removed
