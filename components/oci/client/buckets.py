# SPDX-License-Identifier: Apache-2.0
"""Empties buckets and deletes them."""

from __future__ import annotations

from functools import partial

from components.oci.client.calls import ask_oci, unless_gone
from components.oci.client.session import Session
from components.platform.calls import Tell


def empty_and_delete(session: Session, tell: Tell, namespace: str, bucket: str) -> None:
    """Deletes a bucket with all of its content."""
    empty_bucket(session, tell, namespace, bucket)
    session.client("object_storage").delete_bucket(namespace, bucket)


def empty_bucket(session: Session, tell: Tell, namespace: str, bucket: str) -> int:
    """Removes every object in all versions, and returns their number."""
    client, removed = session.client("object_storage"), 0
    what, listed = f"Empty the bucket {bucket}", partial(client.list_object_versions, namespace, bucket, limit=1000)
    while items := ask_oci(tell, what, listed).data.items:
        for item in items:
            delete = partial(client.delete_object, namespace, bucket, item.name, version_id=item.version_id)
            unless_gone(tell, what, delete)
        removed += len(items)
    return removed
