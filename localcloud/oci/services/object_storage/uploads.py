# SPDX-License-Identifier: Apache-2.0
"""Multipart uploads."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localcloud.oci import tenancy
from localcloud.oci.operations import ApiCall
from localcloud.oci.paging import plain_page
from localcloud.oci.services.object_storage import buckets, listing, objects
from localcloud.oci.services.object_storage.listing import StoredObject
from localcloud.oci.tenancy_store import StoredResource
from localcloud.server import http
from localcloud.server.api_errors import ApiError, invalid_parameter
from localcloud.server.http import Json, Reply, whole_number

MAXIMUM_PARTS = 10_000
_HEADERS = {
    "contentType": "content-type",
    "contentLanguage": "content-language",
    "contentEncoding": "content-encoding",
    "contentDisposition": "content-disposition",
    "cacheControl": "cache-control",
    "storageTier": "storage-tier",
}


@dataclass(frozen=True)
class UploadedPart:
    number: int
    file: str
    size: int
    md5: str
    etag: str


def create_upload(call: ApiCall) -> Reply:
    bucket, details = buckets.find_bucket(call), call.details()
    objects.require_name(details["object"])
    objects.require_etag(call, listing.find_object(call.store, bucket.id, details["object"]))
    _upload_headers(details)
    identifier, moment = str(uuid.uuid4()), http.current_moment()
    call.store.connection.execute(
        "INSERT INTO uploads (id, bucket, name, created, details) VALUES (?, ?, ?, ?, ?)",
        (identifier, bucket.id, details["object"], moment, json.dumps(details)),
    )
    return Reply(200, _render_upload(bucket, identifier, details["object"], moment, details))


def put_part(call: ApiCall) -> Reply:
    _, identifier, _ = _find_upload(call)
    text, upload = call.needed("uploadPartNum"), call.input.upload
    number = whole_number(text)
    if number is None or not 1 <= number <= MAXIMUM_PARTS:
        raise invalid_parameter(f"uploadPartNum must be a number from 1 to {MAXIMUM_PARTS}, not {text[:80]!r}")
    if upload is None:
        raise invalid_parameter("a part needs a body")
    objects.check_md5(call, upload)
    part = UploadedPart(number, uuid.uuid4().hex, upload.size, upload.md5, str(uuid.uuid4()))
    for before in _uploaded_parts(call, identifier):
        if before.number == number:
            listing.discard_file(call, before.file)
    upload.path.rename(call.cloud.objects / part.file)
    call.store.connection.execute(
        "INSERT OR REPLACE INTO parts (upload, number, file, size, md5, etag) VALUES (?, ?, ?, ?, ?, ?)",
        (identifier, number, part.file, part.size, part.md5, part.etag),
    )
    return Reply(200, headers={"etag": part.etag, "opc-content-md5": part.md5})


def list_parts(call: ApiCall) -> Reply:
    _, identifier, _ = _find_upload(call)
    rows = [
        {"partNumber": part.number, "size": part.size, "md5": part.md5, "etag": part.etag}
        for part in _uploaded_parts(call, identifier)
    ]
    page, headers = plain_page(rows, call.query)
    return Reply(200, page, headers)


def list_uploads(call: ApiCall) -> Reply:
    bucket = buckets.find_bucket(call)
    rows = call.store.connection.execute(
        "SELECT id, name, created, details FROM uploads WHERE bucket = ? ORDER BY name, created", (bucket.id,)
    )
    shown = [_render_upload(bucket, row[0], row[1], row[2], json.loads(row[3])) for row in rows]
    page, headers = plain_page(shown, call.query)
    return Reply(200, page, headers)


def commit_upload(call: ApiCall) -> Reply:
    bucket, identifier, upload = _find_upload(call)
    name = call.params["objectName"]
    current = listing.find_object(call.store, bucket.id, name)
    objects.require_etag(call, current)
    parts = {part.number: part for part in _uploaded_parts(call, identifier)}
    details = call.details()
    # The request must commit or exclude every part.
    wanted = {item["partNum"]: item["etag"] for item in details["partsToCommit"]}
    excluded = set(details.get("partsToExclude", []))
    if not wanted or len(wanted) != len(details["partsToCommit"]) or excluded & wanted.keys():
        raise _wrong_part("each part must be named once, and at least one committed")
    for number, etag in wanted.items():
        if number not in parts or parts[number].etag != etag:
            raise _wrong_part(f"part {number} was not uploaded, or its etag is not {etag}")
    if forgotten := sorted(parts.keys() - wanted.keys() - excluded):
        raise _wrong_part(f"part {forgotten[0]} is neither committed nor excluded")
    chosen = [parts[number] for number in sorted(wanted)]
    digests = b"".join(base64.b64decode(part.md5) for part in chosen)
    whole = f"{base64.b64encode(hashlib.md5(digests, usedforsecurity=False).digest()).decode()}-{len(chosen)}"
    moment = http.current_moment()
    item = StoredObject(
        bucket.id, name, sum(part.size for part in chosen), whole,
        {**_upload_headers(upload), listing.MULTIPART_MD5: whole}, current.created if current else moment, moment,
    )  # fmt: skip
    _join_parts(call, chosen, item)
    listing.make_current(call, bucket, item)
    _forget_upload(call, identifier)
    return Reply(200, headers={**item.version_headers, listing.MULTIPART_MD5: whole})


def abort_upload(call: ApiCall) -> Reply:
    _, identifier, _ = _find_upload(call)
    _forget_upload(call, identifier)
    return Reply(204)


def _render_upload(bucket: StoredResource, identifier: str, name: str, created: float, details: Json) -> Json:
    return {
        "namespace": tenancy.NAMESPACE,
        "bucket": bucket.name,
        "object": name,
        "uploadId": identifier,
        "timeCreated": http.format_rfc3339(created),
        "storageTier": details.get("storageTier", "Standard"),
    }


def _find_upload(call: ApiCall) -> tuple[StoredResource, str, Json]:
    """The bucket, the upload's id, and the details with which it was started."""
    bucket, identifier = buckets.find_bucket(call), call.needed("uploadId")
    row = call.store.connection.execute(
        "SELECT details FROM uploads WHERE id = ? AND bucket = ? AND name = ?",
        (identifier, bucket.id, call.params["objectName"]),
    ).fetchone()
    if row is None:
        raise ApiError(404, "NoSuchUpload", f"There is no upload {identifier!r} of {call.params['objectName']!r}")
    return bucket, identifier, json.loads(row[0])


def _upload_headers(details: Json) -> dict[str, str]:
    """The headers of the future object, from the details of the upload."""
    headers = {header: details[field] for field, header in _HEADERS.items() if field in details}
    metadata = details.get("metadata", {})
    own = {f"opc-meta-{name.removeprefix('opc-meta-')}": value for name, value in metadata.items()}
    return listing.valid_headers(headers | own)


def _uploaded_parts(call: ApiCall, identifier: str) -> list[UploadedPart]:
    query = "SELECT number, file, size, md5, etag FROM parts WHERE upload = ? ORDER BY number"
    return [UploadedPart(*row) for row in call.store.connection.execute(query, (identifier,))]


def _wrong_part(why: str) -> ApiError:
    return ApiError(400, "InvalidUploadPart", f"The parts cannot be committed: {why}")


def _join_parts(call: ApiCall, parts: Sequence[UploadedPart], item: StoredObject) -> None:
    """Joins the parts into one file. It gets its final name only when it is complete."""
    folder: Path = call.cloud.objects
    draft = folder / "incoming" / item.file
    try:
        with draft.open("wb") as target:
            for part in parts:
                with (folder / part.file).open("rb") as source:
                    _copy_bytes(source.fileno(), target.fileno(), part.size)
            os.fdatasync(target.fileno())
        draft.rename(folder / item.file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _copy_bytes(source: int, target: int, size: int) -> None:
    while size and (sent := os.sendfile(target, source, None, size)):
        size -= sent


def _forget_upload(call: ApiCall, identifier: str) -> None:
    for part in _uploaded_parts(call, identifier):
        listing.discard_file(call, part.file)
    call.store.connection.execute("DELETE FROM parts WHERE upload = ?", (identifier,))
    call.store.connection.execute("DELETE FROM uploads WHERE id = ?", (identifier,))
