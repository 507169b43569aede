# SPDX-License-Identifier: Apache-2.0
"""Buckets. Their name identifies them within the namespace, and they have no lifecycle state."""

from __future__ import annotations

import re

from localcloud.oci import kinds, limits, models, tenancy
from localcloud.oci.ocids import new_ocid
from localcloud.oci.operations import ApiCall
from localcloud.oci.paging import page_of
from localcloud.oci.tenancy_store import StoredResource
from localcloud.server import http
from localcloud.server.api_errors import ApiError, invalid_parameter
from localcloud.server.http import Json, Reply

SERVICE = "object_storage"
KIND = "bucket"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,256}")
# What prevents the deletion of a bucket, and its table.
_HELD_BY = {"objects": "objects", "object versions": "versions", "multipart uploads": "uploads"}
_COUNTS = {"approximateCount": "count(*)", "approximateSize": "coalesce(sum(size), 0)"}
_DEFAULTS: Json = {
    "publicAccessType": "NoPublicAccess",
    "storageTier": "Standard",
    "objectEventsEnabled": False,
    "versioning": "Disabled",
    "autoTiering": "Disabled",
    "replicationEnabled": False,
    "isReadOnly": False,
    "metadata": {},
    "freeformTags": {},
    "definedTags": {},
}


def require_namespace(call: ApiCall) -> None:
    if call.params["namespaceName"] != tenancy.NAMESPACE:
        name = call.params["namespaceName"]
        raise ApiError(
            404, "NamespaceNotFound", f"You do not have authorization for the namespace {name!r} or it does not exist"
        )


def find_bucket(call: ApiCall) -> StoredResource:
    """The bucket that the path names."""
    require_namespace(call)
    return find_named(call, call.params["bucketName"])


def find_named(call: ApiCall, name: str) -> StoredResource:
    buckets = call.store.live(KIND, name=name)
    if not buckets:
        message = (
            f"Either the bucket {name!r} does not exist in the namespace {tenancy.NAMESPACE!r}, or you may not see it"
        )
        raise ApiError(404, "BucketNotFound", message)
    return buckets[0]


def create_bucket(call: ApiCall) -> Reply:
    require_namespace(call)
    details = call.details()
    name = details["name"]
    if not _NAME.fullmatch(name):
        raise invalid_parameter(
            f"{name!r} is not a valid bucket name: use letters, digits, dots, hyphens and underscores, at most 256"
        )
    models.require_choices(SERVICE, "Bucket", details)
    kinds.require_compartment(call, details["compartmentId"])
    if call.store.live(KIND, name=name):
        raise ApiError(409, "BucketAlreadyExists", f"Either the bucket {name!r} already exists or you may not see it")
    limits.require_room(call, KIND)
    moment = http.current_moment()
    body = {
        **_DEFAULTS,
        **details,
        "id": new_ocid(KIND, tenancy.REGION_KEY),
        "namespace": tenancy.NAMESPACE,
        "createdBy": call.principal.id,
        "timeCreated": http.format_rfc3339(moment),
    }
    bucket = call.store.add(StoredResource(body["id"], KIND, details["compartmentId"], name, "", body, created=moment))
    return _answer_with_bucket(bucket, {"location": f"/n/{tenancy.NAMESPACE}/b/{name}"})


def get_bucket(call: ApiCall) -> Reply:
    bucket = find_bucket(call)
    bucket.require_etag(call.if_match)
    fields = call.query.get("fields", "").split(",")
    counted = [name for name in _COUNTS if name in fields]
    if not counted:
        return _answer_with_bucket(bucket, {})
    columns = ", ".join(_COUNTS[name] for name in counted)
    counts = call.store.connection.execute(f"SELECT {columns} FROM objects WHERE bucket = ?", (bucket.id,)).fetchone()
    return _answer_with_bucket(bucket, {}, dict(zip(counted, counts, strict=True)))


def head_bucket(call: ApiCall) -> Reply:
    bucket = find_bucket(call)
    bucket.require_etag(call.if_match)
    return Reply(200, headers={"etag": bucket.etag})


def list_buckets(call: ApiCall) -> Reply:
    require_namespace(call)
    call.needed("compartmentId")
    page = page_of(call.store, KIND, {"sortBy": "NAME", **call.query}, {}, live_only=True)
    return Reply(200, [_render_bucket(item, "BucketSummary") for item in page.items], page.headers)


def update_bucket(call: ApiCall) -> Reply:
    bucket = find_bucket(call)
    bucket.require_etag(call.if_match)
    details = call.details()
    if (
        details.get("name", bucket.name) != bucket.name
        or details.get("namespace", tenancy.NAMESPACE) != tenancy.NAMESPACE
    ):
        raise invalid_parameter("a bucket cannot be renamed or moved to another namespace")
    models.require_choices(SERVICE, "Bucket", details)
    compartment = details.get("compartmentId", bucket.compartment)
    kinds.require_compartment(call, compartment)
    changed = call.store.put(bucket, body={**bucket.body, **details}, compartment=compartment)
    return _answer_with_bucket(changed, {})


def delete_bucket(call: ApiCall) -> Reply:
    bucket = find_bucket(call)
    bucket.require_etag(call.if_match)
    for content, table in _HELD_BY.items():
        query = f"SELECT 1 FROM {table} WHERE bucket = ? LIMIT 1"
        if call.store.connection.execute(query, (bucket.id,)).fetchone():
            message = f"Bucket named {bucket.name!r} is not empty. Delete its {content} first"
            raise ApiError(409, "BucketNotEmpty", message)
    call.store.put(bucket, live=False)
    return Reply(204)


def _answer_with_bucket(bucket: StoredResource, headers: dict[str, str], more: Json | None = None) -> Reply:
    return Reply(200, {**_render_bucket(bucket, "Bucket"), **(more or {})}, {"etag": bucket.etag, **headers})


def _render_bucket(bucket: StoredResource, model: str) -> Json:
    return models.shape_reply(SERVICE, model, {**bucket.body, "etag": bucket.etag})
