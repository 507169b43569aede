# SPDX-License-Identifier: Apache-2.0
"""`trainyard data` in OCI's object storage: implements the store and the opener of `components.platform.files`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from catalog.tables import table
from components.oci import iam
from components.oci.client.calls import call_oci, parse_bucket_folder
from components.oci.client.session import Session, compartment_of_caller, session_of_caller
from components.oci.iam.statement import StatementError
from components.oci.stack import OciStack
from components.oci.statements import (
    NARROWING,
    Need,
    group_named,
    location_of_compartment,
    permissions_of,
    smallest_grant,
)
from components.platform.calls import Call, ProviderError, call_of
from components.platform.files import (
    Content,
    ContentChangedError,
    ObjectChangedError,
    Sink,
    StoredObject,
    StoredPart,
    StoreOpeners,
    StoreRequest,
    TransferError,
)
from components.platform.streams import BLOCK_BYTES, body_of, drain_into_sink

T = TypeVar("T")
_FIELDS = "name,size,md5,etag,timeModified"
_PAGE = 1000
# The metadata key for the size of an upload's parts, which the object's checksum does not show.
_PART_BYTES = "trainyard-part-bytes"
_META = "opc-meta-"
_MOVED_ON = frozenset({(404, "NoSuchUpload"), (400, "InvalidUploadPart"), (404, "ObjectNotFound")})
_REFUSED = frozenset({"BucketNotFound", "NotAuthorizedOrNotFound", "NotAuthorized", "Forbidden"})


@dataclass
class BucketStore:
    """Implements `components.platform.files.Store`. `explain` adds the remedy to an error that may be a refusal."""

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
                modified = f"{item.time_modified:%Y-%m-%dT%H:%M:%SZ}" if item.time_modified is not None else ""
                yield StoredObject(item.name, item.size, item.md5 or "", item.etag, modified)
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
            # The raw bytes: the SDK would decompress an object whose headers say that it is compressed.
            try:
                drain_into_sink(answer.data.raw.stream(BLOCK_BYTES, decode_content=False), sink, length)
            finally:
                answer.data.raw.release_conn()

        self._attempt(f"Fetch {item.name}", fetch)

    def put(self, name: str, content: Content, replaces: StoredObject | None) -> None:
        put = self._client.put_object
        self._attempt(
            f"Put {name}",
            lambda: put(
                *self._place, name, body_of(content), content_length=content.size, content_md5=content.md5,
                **_write_condition(replaces),
            ),
        )  # fmt: skip

    def begin(self, name: str, part_bytes: int, replaces: StoredObject | None) -> str:
        from oci.object_storage.models import CreateMultipartUploadDetails

        details = CreateMultipartUploadDetails(object=name, metadata={_META + _PART_BYTES: str(part_bytes)})
        begin = partial(self._client.create_multipart_upload, *self._place, details, **_write_condition(replaces))
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
            self._client.commit_multipart_upload, *self._place, name, upload, details, **_write_condition(replaces)
        )
        return str(self._attempt(f"Complete the upload of {name}", commit).headers.get("opc-multipart-md5", ""))

    def abandon(self, name: str, upload: str) -> None:
        abort = partial(self._client.abort_multipart_upload, *self._place, name, upload)
        # If this fails, the parts only take up space. The error that led here is reported anyway.
        with suppress(ProviderError):
            call_oci(replace(self.call, patience=0.0), f"Abandon the upload of {name}", abort)

    @property
    def _client(self) -> Any:
        return self.session.client("object_storage")

    @property
    def _place(self) -> tuple[str, str]:
        return self.namespace, self.bucket

    def _attempt(self, what: str, operation: Callable[[], T]) -> T:
        try:
            return call_oci(self.call, what, operation)
        except ProviderError as error:
            cause = error.__cause__
            status, code = getattr(cause, "status", None), getattr(cause, "code", None)
            if status == 412 or (status, code) in _MOVED_ON:
                raise ObjectChangedError from None
            if code == "UnmatchedContentMD5":
                raise ContentChangedError from None
            raise self.explain(error) from cause


def _write_condition(replaces: StoredObject | None) -> dict[str, str]:
    return {"if_match": replaces.etag} if replaces is not None else {"if_none_match": "*"}


@dataclass(frozen=True)
class OciOpener:
    """Implements `components.platform.files.StoreOpener` with the credentials that all clients of OCI use."""

    request: StoreRequest
    session: Session
    call: Call

    def bucket(self, name: str) -> BucketStore:
        client = self.session.client("object_storage")
        namespace = str(call_oci(self.call, "Ask for the namespace", lambda: client.get_namespace().data))
        return self._store(namespace, name)

    def folder(self, address: str) -> tuple[BucketStore, str]:
        place = parse_bucket_folder(address)
        if place is None:
            raise TransferError(f"`{address}` is not a folder in a bucket of OCI")
        return self._store(place.namespace, place.bucket), place.prefix

    def _store(self, namespace: str, bucket: str) -> BucketStore:
        return BucketStore(self.session, self.call, namespace, bucket, partial(self._explain, bucket))

    def _explain(self, bucket: str, error: ProviderError) -> ProviderError:
        request = self.request
        here = compartment_of_caller(request.where)
        stack = request.stack if isinstance(request.stack, OciStack) else None
        user, profile = self.session.credentials.get("user"), self.session.profile or "DEFAULT"
        name = f"{f'the user {user}' if user else 'the holder of a session token'} (profile `{profile}`)"
        return Caller(name, request.purpose, bucket, here, stack, request.where.cloud is not None).explain(error)


def make_oci_opener(request: StoreRequest) -> OciOpener:
    session = session_of_caller(request.where)
    return OciOpener(request, session, call_of(request.purpose, request.where.tell))


@dataclass(frozen=True)
class Caller:
    """The caller: words for the credentials, and the stack whose file names the users' group."""

    name: str
    purpose: str
    bucket: str
    compartment: str
    stack: OciStack | None = None
    local: bool = False

    def explain(self, error: ProviderError) -> ProviderError:
        """The error. If it may be a refusal, the remedy has the missing statements and the group that needs them."""
        if getattr(error.__cause__, "code", None) not in _REFUSED:
            return error
        return ProviderError(error.cause, "\n".join(self._remedy()))

    def _remedy(self) -> Iterator[str]:
        yield (
            f"Either there is no bucket `{self.bucket}`, or you may not do this with it: OCI gives the same answer for "
            "both. A bucket that a stack makes comes with the stack's first `up`."
        )
        yield f"You are {self.name}. If the bucket exists, a statement is missing for a group that you are in:"
        yield from (f"  {text}" for text in self.statements())
        yield "`trainyard access STACK` shows what the stack grants. New policies take a few minutes to take effect."
        if self.local:
            yield "On the local cloud, `trainyard cloud log` shows the call and who lacked what."

    def statements(self) -> tuple[str, ...]:
        """The least statements for the whole purpose, not only for the call that was refused first."""
        needed: dict[str, Need] = {}
        for named in table("oci_access")["transfers"][self.purpose]:
            for resource_type, permissions, trust in permissions_of(named):
                need = needed.setdefault(resource_type, Need())
                need.permissions |= permissions
                need.trusts.append(trust)
        try:
            group, place = self._group(), location_of_compartment(self.compartment)
            only = iam.equals_text(NARROWING["bucket"], self.bucket)
            grants = (smallest_grant(kind, need) for kind, need in needed.items())
            return tuple(iam.to_text(iam.Statement(group, grant, place, only)) for grant in grants)
        except StatementError:
            return ()  # a name that no statement can contain is not a valid bucket name either

    def _group(self) -> iam.Subject:
        if self.stack is None:
            return group_named("group", "YOUR-GROUP")
        access, users = self.stack.access, self.stack.access.users
        dynamic = self.stack.physical("notebooks") if users.notebooks else users.dynamic_group
        if dynamic:
            return group_named("dynamic-group", dynamic, access.domain)
        return group_named("group", users.group or "YOUR-GROUP", access.domain)


STORE_OPENERS = StoreOpeners(make_oci_opener)
