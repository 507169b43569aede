# SPDX-License-Identifier: Apache-2.0
"""Puts, reads, deletes, renames and copies objects."""

from __future__ import annotations

import os
import re

from localcloud.oci import tenancy
from localcloud.oci.oci_errors import etag_mismatch
from localcloud.oci.operations import ApiCall
from localcloud.oci.services.object_storage import buckets, listing
from localcloud.oci.services.object_storage.listing import StoredObject
from localcloud.oci.tenancy_store import StoredResource
from localcloud.oci.work_requests import add_work_request
from localcloud.server import http, progress_record
from localcloud.server.api_errors import ApiError, invalid_parameter
from localcloud.server.http import FilePart, Json, Reply, Upload

MAXIMUM_NAME = 1024
MAXIMUM_BATCH = 1000
_KEPT_HEADERS = (
    "content-type",
    "content-language",
    "content-encoding",
    "content-disposition",
    "cache-control",
    "storage-tier",
)
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
# Query parameters that override the object's own headers in a reply.
_OVERRIDES = {
    "httpResponseContentDisposition": "content-disposition",
    "httpResponseCacheControl": "cache-control",
    "httpResponseContentType": "content-type",
    "httpResponseContentLanguage": "content-language",
    "httpResponseContentEncoding": "content-encoding",
}


def require_name(name: str) -> None:
    if not name or len(name.encode(errors="replace")) > MAXIMUM_NAME or "\0" in name:
        raise invalid_parameter(f"an object needs a name of at most {MAXIMUM_NAME} bytes, without zero bytes")


def check_md5(call: ApiCall, upload: Upload) -> None:
    claimed = call.headers.get("content-md5")
    if claimed and claimed != upload.md5:
        raise ApiError(400, "UnmatchedContentMD5", f"Content-MD5 is {claimed}, but the body has {upload.md5}")


def put_object(call: ApiCall) -> Reply:
    bucket, name, upload = buckets.find_bucket(call), call.params["objectName"], call.input.upload
    require_name(name)
    if upload is None:
        raise invalid_parameter("an object needs a body")
    current = listing.find_object(call.store, bucket.id, name)
    require_etag(call, current)
    check_md5(call, upload)
    headers = {key: value for key, value in call.headers.items() if key in _KEPT_HEADERS or key.startswith("opc-meta-")}
    created = current.created if current else http.current_moment()
    item = StoredObject(bucket.id, name, upload.size, upload.md5, headers, created)
    upload.path.rename(call.cloud.objects / item.file)
    listing.make_current(call, bucket, item)
    if progress_record.is_status_object(name, item.size):
        status = progress_record.read_status_file(call.cloud.objects / item.file)
        progress_record.record_status(call.store, bucket.id, name, status, item.modified)
    return Reply(200, headers={**item.version_headers, "opc-content-md5": upload.md5})


def get_object(call: ApiCall) -> Reply:
    _, stored_object = _find_version(call)
    start, length = 0, stored_object.size
    overrides = {header: call.query[name] for name, header in _OVERRIDES.items() if name in call.query}
    headers = {**_object_headers(stored_object), **listing.valid_headers(overrides)}
    status = 200
    if wanted := call.headers.get("range"):
        start, length = _parse_byte_range(wanted, stored_object.size)
        headers["content-range"] = f"bytes {start}-{start + length - 1}/{stored_object.size}"
        status = 206
    return Reply(status, headers=headers, file=FilePart(call.cloud.objects / stored_object.file, start, length))


def head_object(call: ApiCall) -> Reply:
    _, stored_object = _find_version(call)
    return Reply(200, headers={**_object_headers(stored_object), "content-length": str(stored_object.size)})


def delete_object(call: ApiCall) -> Reply:
    bucket, stored_object = _find_version(call, markers=True)
    headers = {"last-modified": http.format_http_date(stored_object.modified)}
    if call.query.get("versionId"):
        listing.remove_version(call, bucket, stored_object)
        return Reply(204, headers=headers | _version_headers(stored_object))
    marker = listing.remove_object(call, bucket, stored_object)
    return Reply(204, headers=headers | (_version_headers(marker) if marker else {}))


def batch_delete(call: ApiCall) -> Reply:
    bucket, details = buckets.find_bucket(call), call.details()
    if len(details["objects"]) > MAXIMUM_BATCH:
        raise invalid_parameter(f"at most {MAXIMUM_BATCH} objects can be deleted at once")
    deleted: list[Json] = []
    failed: list[Json] = []
    for entry in details["objects"]:
        name = entry["objectName"]
        stored_object = listing.find_object(call.store, bucket.id, name)
        if stored_object is None:
            failed.append(_delete_failure(name, _object_not_found(name, bucket)))
        elif entry.get("ifMatch", stored_object.etag) not in ("*", stored_object.etag):
            failed.append(_delete_failure(name, etag_mismatch()))
        else:
            listing.remove_object(call, bucket, stored_object)
            deleted.append({"objectName": name, "timeLastModified": http.format_rfc3339(http.current_moment())})
    return Reply(200, {"deleted": [] if details.get("isSkipDeletedResult") else deleted, "failed": failed})


def rename_object(call: ApiCall) -> Reply:
    bucket, details = buckets.find_bucket(call), call.details()
    require_name(details["newName"])
    stored_object = listing.find_object(call.store, bucket.id, details["sourceName"])
    if stored_object is None:
        raise _object_not_found(details["sourceName"], bucket)
    if details.get("srcObjIfMatchETag", stored_object.etag) not in ("*", stored_object.etag):
        raise etag_mismatch()
    if listing.find_object(call.store, bucket.id, details["newName"]):
        raise ApiError(412, "IfNoneMatchFailed", f"The object {details['newName']!r} already exists")
    return Reply(
        200, headers=listing.rename_stored_object(call.store, stored_object, details["newName"]).version_headers
    )


def copy_object(call: ApiCall) -> Reply:
    """Copies at once, but answers with a work request, as OCI does because objects may be large."""
    source, details = buckets.find_bucket(call), call.details()
    name, version = details["sourceObjectName"], details.get("sourceVersionId")
    stored_object = listing.find_object(call.store, source.id, name)
    if version:
        stored_object = listing.lookup_version(call.store, source.id, name, version)
    if stored_object is None or stored_object.marker:
        raise _object_not_found(name, source)
    if details.get("sourceObjectIfMatchETag", stored_object.etag) not in ("*", stored_object.etag):
        raise etag_mismatch()
    if details["destinationRegion"] != tenancy.REGION or details["destinationNamespace"] != tenancy.NAMESPACE:
        raise invalid_parameter(f"the local cloud copies within {tenancy.REGION} and {tenancy.NAMESPACE} only")
    target, name = buckets.find_named(call, details["destinationBucket"]), details["destinationObjectName"]
    require_name(name)
    current = listing.find_object(call.store, target.id, name)
    if_match, if_none_match = (details.get(f"destinationObjectIf{word}ETag") for word in ("Match", "NoneMatch"))
    if if_match and (current is None or if_match not in ("*", current.etag)):
        raise etag_mismatch()
    if if_none_match and current and if_none_match in ("*", current.etag):
        raise ApiError(412, "IfNoneMatchFailed", "The object already exists")
    headers = dict(stored_object.headers)
    if "destinationObjectMetadata" in details:
        headers = {key: value for key, value in headers.items() if not key.startswith("opc-meta-")}
        own = {f"opc-meta-{key}": value for key, value in details["destinationObjectMetadata"].items()}
        headers |= listing.valid_headers(own)
    if "destinationObjectStorageTier" in details:
        headers["storage-tier"] = details["destinationObjectStorageTier"]
    created = current.created if current else http.current_moment()
    item = StoredObject(target.id, name, stored_object.size, stored_object.md5, headers, created)
    os.link(call.cloud.objects / stored_object.file, call.cloud.objects / item.file)  # files never change
    listing.make_current(call, target, item)
    return Reply(202, headers=add_work_request(call, "COPY_OBJECT", "object", "WRITTEN", target))


def _find_version(call: ApiCall, markers: bool = False) -> tuple[StoredResource, StoredObject]:
    """The version that the request names, by default the current one."""
    bucket, name = buckets.find_bucket(call), call.params["objectName"]
    version = call.query.get("versionId")
    stored_object = listing.find_object(call.store, bucket.id, name)
    if version:
        stored_object = listing.lookup_version(call.store, bucket.id, name, version)
    if stored_object is None or (stored_object.marker and not markers):
        raise _object_not_found(name, bucket)
    require_etag(call, stored_object)
    return bucket, stored_object


def _delete_failure(name: str, error: ApiError) -> Json:
    return {"objectName": name, "errorMessage": error.message, "statusCode": error.status}


def _version_headers(item: StoredObject) -> dict[str, str]:
    return {"version-id": item.file, **({"is-delete-marker": "true"} if item.marker else {})}


def _object_not_found(name: str, bucket: StoredResource) -> ApiError:
    return ApiError(404, "ObjectNotFound", f"The object {name!r} was not found in the bucket {bucket.name!r}")


def require_etag(call: ApiCall, current: StoredObject | None) -> None:
    if_match, if_none_match = call.if_match, call.headers.get("if-none-match")
    if if_match and (current is None or if_match not in ("*", current.etag)):
        raise etag_mismatch()
    if if_none_match and current and if_none_match in ("*", current.etag):
        if call.operation.method in ("GET", "HEAD"):
            raise ApiError(304, "NotModified", "The object has not changed")
        raise ApiError(412, "IfNoneMatchFailed", "The object already exists")


def _parse_byte_range(wanted: str, size: int) -> tuple[int, int]:
    match = _RANGE.fullmatch(wanted)
    if not match or not any(match.groups()):
        raise invalid_parameter(f"{wanted!r} is not a valid range")
    first, last = match.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(int(last), size - 1) if first and last else size - 1
    if start > end:
        raise ApiError(416, "InvalidRange", f"{wanted} lies outside the object of {size} bytes")
    return start, end - start + 1


def _object_headers(item: StoredObject) -> dict[str, str]:
    digest = {} if listing.MULTIPART_MD5 in item.headers else {"content-md5": item.md5}
    return {
        "content-type": "application/octet-stream",
        "storage-tier": "Standard",
        **item.headers,
        **digest,
        **item.version_headers,
        "accept-ranges": "bytes",
    }
