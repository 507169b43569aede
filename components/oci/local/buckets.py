# SPDX-License-Identifier: Apache-2.0
"""Buckets of a local stack, emptied before they go."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from components.oci.client.calls import is_gone
from components.oci.client.session import Session
from components.oci.local.calls import ask, unless_gone
from components.oci.local.sessions import DEPLOYER, session_of
from components.oci.local.types import BUCKET
from components.platform.calls import Tell
from components.platform.errors import ProviderError
from components.platform.local_cloud import LocalCloud
from components.platform.states import Row, name_of


def empty_buckets(cloud: LocalCloud, going: Sequence[Row], tell: Tell) -> int:
    """Removes the objects of the buckets that are `going`; how many there were."""
    session, removed = session_of(cloud, DEPLOYER), 0
    for row in going:
        if row["type"] != BUCKET:
            continue
        try:
            removed += empty(session, tell, cloud.namespace, name_of(row))
        except ProviderError as error:
            # Gone behind Pulumi's back: then there is nothing in it.
            if error.__cause__ is None or not is_gone(error.__cause__):
                raise
    return removed


def empty_and_delete(session: Session, tell: Tell, namespace: str, bucket: str) -> None:
    """A bucket with all that is in it."""
    empty(session, tell, namespace, bucket)
    session.client("object_storage").delete_bucket(namespace, bucket)


def empty(session: Session, tell: Tell, namespace: str, bucket: str) -> int:
    """Removes every object in all its versions; how many there were."""
    client, removed = session.client("object_storage"), 0
    what, listed = f"Empty the bucket {bucket}", partial(client.list_object_versions, namespace, bucket, limit=1000)
    while items := ask(tell, what, listed).data.items:
        for item in items:
            delete = partial(client.delete_object, namespace, bucket, item.name, version_id=item.version_id)
            unless_gone(tell, what, delete)
        removed += len(items)
    return removed
