# SPDX-License-Identifier: Apache-2.0
"""Empties buckets."""

from __future__ import annotations

from functools import partial
from typing import Any

from components.aws.client.aws_session import ask_aws, ask_aws_if_exists
from components.platform.calls import Tell


def empty_bucket(client: Any, tell: Tell, bucket: str) -> int:
    """Removes every object in all versions, and returns their number. A missing bucket counts as empty."""
    what, removed = f"Empty the bucket {bucket}", 0
    while page := ask_aws_if_exists(tell, what, partial(client.list_object_versions, Bucket=bucket, MaxKeys=1000)):
        rows = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        if not rows:
            break
        objects = [{"Key": row["Key"], "VersionId": row["VersionId"]} for row in rows]
        # A list of deletions is XML, which cannot hold every name.
        for each in (one for one in objects if not one["Key"].isprintable()):
            ask_aws(tell, what, partial(client.delete_object, Bucket=bucket, **each))
        if listed := [one for one in objects if one["Key"].isprintable()]:
            wanted = {"Objects": listed, "Quiet": True}
            ask_aws(tell, what, partial(client.delete_objects, Bucket=bucket, Delete=wanted))
        removed += len(rows)
    return removed
