# SPDX-License-Identifier: Apache-2.0
"""One bucket of OCI's object storage, through Oracle's SDK.

The SDK's own UploadManager resumes without comparing what is there, retries where nobody sees it, and fetches nothing.
So only its calls are used here (docs/decisions/0017).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from components.oci.client.calls import attempt
from components.oci.client.session import Session
from components.platform.calls import Call
from components.platform.checksums import BLOCK_BYTES
from components.platform.errors import ProviderError
from components.platform.file_errors import ContentChangedError, ObjectChangedError
from components.platform.files import Content, Sink, StoredObject, StoredPart
from components.platform.streams import body_of, drain

T = TypeVar("T")
_FIELDS = "name,size,md5,etag,timeModified"
_PAGE = 1000
# Under this name an object says in which parts it was uploaded: its checksum does not.
_PART_BYTES = "trainyard-part-bytes"
_META = "opc-meta-"
_MOVED_ON = frozenset({(404, "NoSuchUpload"), (400, "InvalidUploadPart"), (404, "ObjectNotFound")})


@dataclass
class BucketStore:
    """`components.platform.files.Store`. `explain` makes an error for people of one that may be a refusal."""

    session: Session
    call: Call
    namespace: str
    bucket: str
    explain: Callable[[ProviderError], ProviderError]

    @property
    def address(self) -> str:
        return f"oci://{self.bucket}@{self.namespace}"

    def list(self, prefix: str) -> Iterator[StoredObject]:
        start: str | None = None
        while True:
            options = {"prefix": prefix, "fields": _FIELDS, "limit": _PAGE, **({"start": start} if start else {})}
            listed = partial(self._client.list_objects, *self._place, **options)
            page = self._attempt(f"List the objects of {self.bucket}", listed).data
            for item in page.objects:
                yield StoredObject(item.name, item.size, item.md5 or "", item.etag, _time(item.time_modified))
            start = page.next_start_with
            if not start:
                return

    def look(self, name: str) -> tuple[StoredObject, int | None] | None:
        def head() -> Any:
            try:
                return self._client.head_object(*self._place, name)
            except Exception as error:
                if getattr(error, "status", None) == 404:
                    return None
                raise

        answer = self._attempt(f"Look at {name}", head)
        if answer is None:
            return None
        headers = answer.headers
        checksum = headers.get("opc-multipart-md5") or headers.get("content-md5") or ""
        stated = headers.get(_META + _PART_BYTES, "")
        part = int(stated) if stated.isdecimal() and len(stated) < 16 else None
        size = int(headers.get("content-length", 0))
        return StoredObject(name, size, checksum, headers.get("etag", ""), headers.get("last-modified", "")), part

    def read(self, item: StoredObject, start: int, length: int, sink: Sink) -> None:
        def fetch() -> None:
            sink.restart()
            wanted = f"bytes={start}-{start + length - 1}"
            answer = self._client.get_object(*self._place, item.name, range=wanted, if_match=item.etag)
            _drain(answer.data.raw, sink, length)

        self._attempt(f"Fetch {item.name}", fetch)

    def put(self, name: str, content: Content, replaces: StoredObject | None) -> None:
        put = self._client.put_object
        self._attempt(
            f"Put {name}",
            lambda: put(
                *self._place, name, body_of(content), content_length=content.size, content_md5=content.md5,
                **_condition(replaces),
            ),
        )  # fmt: skip

    def begin(self, name: str, part_bytes: int, replaces: StoredObject | None) -> str:
        from oci.object_storage.models import CreateMultipartUploadDetails

        details = CreateMultipartUploadDetails(object=name, metadata={_META + _PART_BYTES: str(part_bytes)})
        begin = partial(self._client.create_multipart_upload, *self._place, details, **_condition(replaces))
        return str(self._attempt(f"Begin the upload of {name}", begin).data.upload_id)

    def parts(self, name: str, upload: str) -> dict[int, StoredPart] | None:
        made: dict[int, StoredPart] = {}
        page: str | None = None
        while True:
            more = {"page": page} if page else {}
            listed = partial(self._client.list_multipart_upload_parts, *self._place, name, upload, limit=_PAGE, **more)
            try:
                answer = self._attempt(f"List the parts of {name}", listed)
            except ObjectChangedError:
                return None
            made |= {part.part_number: StoredPart(part.size, part.md5, part.etag) for part in answer.data}
            page = answer.headers.get("opc-next-page")
            if not page:
                return made

    def put_part(self, name: str, upload: str, number: int, content: Content) -> None:
        put = self._client.upload_part
        self._attempt(
            f"Put part {number} of {name}",
            lambda: put(
                *self._place, name, upload, number, body_of(content), content_length=content.size,
                content_md5=content.md5,
            ),
        )  # fmt: skip

    def commit(self, name: str, upload: str, parts: Mapping[int, StoredPart], replaces: StoredObject | None) -> str:
        from oci.object_storage.models import CommitMultipartUploadDetails, CommitMultipartUploadPartDetails

        each = [CommitMultipartUploadPartDetails(part_num=number, etag=part.etag) for number, part in parts.items()]
        details = CommitMultipartUploadDetails(parts_to_commit=each)
        commit = partial(
            self._client.commit_multipart_upload, *self._place, name, upload, details, **_condition(replaces)
        )
        return str(self._attempt(f"Complete the upload of {name}", commit).headers.get("opc-multipart-md5", ""))

    def abandon(self, name: str, upload: str) -> None:
        abort = partial(self._client.abort_multipart_upload, *self._place, name, upload)
        # It costs room, no more. What made it useless is told anyway.
        with suppress(ProviderError):
            attempt(replace(self.call, patience=0.0), f"Abandon the upload of {name}", abort)

    @property
    def _client(self) -> Any:
        return self.session.client("object_storage")

    @property
    def _place(self) -> tuple[str, str]:
        return self.namespace, self.bucket

    def _attempt(self, what: str, operation: Callable[[], T]) -> T:
        try:
            return attempt(self.call, what, operation)
        except ProviderError as error:
            cause = error.__cause__
            status, code = getattr(cause, "status", None), getattr(cause, "code", None)
            if status == 412 or (status, code) in _MOVED_ON:
                raise ObjectChangedError from None
            if code == "UnmatchedContentMD5":
                raise ContentChangedError from None
            raise self.explain(error) from cause


def _condition(replaces: StoredObject | None) -> dict[str, str]:
    return {"if_match": replaces.etag} if replaces is not None else {"if_none_match": "*"}


def _drain(raw: Any, sink: Sink, length: int) -> None:
    """As it is on the wire: the SDK would unpack an object that says it is compressed."""
    try:
        drain(raw.stream(BLOCK_BYTES, decode_content=False), sink, length)
    finally:
        raw.release_conn()


def _time(moment: Any) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment is not None else ""
