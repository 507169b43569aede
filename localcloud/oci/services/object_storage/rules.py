# SPDX-License-Identifier: Apache-2.0
"""A bucket's lifecycle policy, and lists that clients read and that are always empty here."""

from __future__ import annotations

from localcloud.oci.services.object_storage import buckets
from localcloud.server import http
from localcloud.server.errors import ApiError
from localcloud.server.http import Json, Reply
from localcloud.server.operations import ApiCall

# The field of a bucket's policy. OCI's model lacks it, so clients never see it.
_POLICY = "lifecyclePolicy"


def none_in_a_collection(call: ApiCall) -> Reply:
    buckets.find(call)
    return Reply(200, {"items": []})


def none(call: ApiCall) -> Reply:
    buckets.find(call)
    return Reply(200, [])


def get_lifecycle(call: ApiCall) -> Reply:
    bucket = buckets.find(call)
    policy = bucket.body.get(_POLICY)
    if not policy:
        raise ApiError(404, "LifecyclePolicyNotFound", f"The bucket {bucket.name!r} has no lifecycle policy")
    return Reply(200, policy["content"], {"etag": policy["etag"]})


def put_lifecycle(call: ApiCall) -> Reply:
    bucket = buckets.find(call)
    moment = http.now()
    content: Json = {"timeCreated": http.rfc3339(moment), "items": call.details().get("items", [])}
    changed = call.store.put(bucket, body={**bucket.body, _POLICY: {"content": content, "etag": f"{moment}"}})
    return Reply(200, content, {"etag": changed.body[_POLICY]["etag"]})


def delete_lifecycle(call: ApiCall) -> Reply:
    bucket = buckets.find(call)
    call.store.put(bucket, body={name: value for name, value in bucket.body.items() if name != _POLICY})
    return Reply(204)
