# SPDX-License-Identifier: Apache-2.0
"""`trainyard data` in Amazon S3: implements the store and the opener of `components.platform.files`.

Checksums are MD5, which S3 returns as the ETag, in hexadecimal. If the bucket encrypts with a KMS key, ETags are not
MD5. Then an object that was uploaded whole has its MD5 in its metadata, and one uploaded in parts has no checksum.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from components.aws.client.aws_session import aws_session_of_caller
from components.aws.client.start_folders import parse_s3_folder
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
from components.platform.streams import BLOCK_BYTES, body_of, checksum_of_parts, checksum_text, drain_into_sink
from components.s3 import ACCESS_CODES, Session, call_aws, code_of, list_aws_pages, read_from_aws_if_exists, status_of

T = TypeVar("T")
# The metadata keys for an object's MD5 and for the size of the parts of its upload.
_MD5, _PART_BYTES = "trainyard-md5", "trainyard-part-bytes"
_DIGEST = re.compile(r'"?([0-9a-f]{32})(-[0-9]+)?"?')
_MOVED_ON = frozenset({"PreconditionFailed", "NoSuchKey", "NoSuchUpload", "InvalidPart", "InvalidPartOrder"})
_CHANGED = frozenset({"BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch"})


@dataclass
class BucketStore:
    """Implements `components.platform.files.Store`. `explain` adds the remedy to an error that may be a refusal."""

    session: Session
    call: Call
    bucket: str
    explain: Callable[[ProviderError], ProviderError]
    # MD5 of parts that this process sent, by upload, number and ETag. S3 verified each on arrival.
    _sent: dict[tuple[str, int, str], str] = field(default_factory=dict, repr=False)
    # Whether ETags are MD5. None: not known yet.
    _plain: bool | None = None

    @property
    def address(self) -> str:
        return f"s3://{self.bucket}"

    def list(self, prefix: str) -> Iterator[StoredObject]:
        what = f"List the objects of {self.bucket}"
        request: dict[str, Any] = {"Bucket": self.bucket, "Prefix": prefix}
        try:
            for page in list_aws_pages(self.call, what, self._client, "list_objects_v2", **request):
                for row in page.get("Contents") or ():
                    checksum = checksum_of(row["ETag"]) if self._is_plain(row["Key"]) else ""
                    yield StoredObject(row["Key"], row["Size"], checksum, row["ETag"], _utc_text(row["LastModified"]))
        except ProviderError as error:
            raise self.explain(error) from error.__cause__

    def _is_plain(self, name: str) -> bool:
        """Whether ETags in a listing are MD5. Listings do not say how objects are encrypted, so one object is looked
        up: the bucket encrypts all objects in the same way."""
        if self._plain is None:
            head = self._head(name)
            self._plain = head is None or _is_md5(head)
        return self._plain

    def look(self, name: str) -> tuple[StoredObject, int | None] | None:
        head = self._head(name)
        if head is None:
            return None
        metadata = head.get("Metadata") or {}
        checksum = checksum_of(head["ETag"]) if _is_md5(head) else str(metadata.get(_MD5, ""))
        stated = str(metadata.get(_PART_BYTES, ""))
        part = int(stated) if stated.isdecimal() and len(stated) < 16 else None
        found = StoredObject(name, head["ContentLength"], checksum, head["ETag"], _utc_text(head["LastModified"]))
        return found, part

    def _head(self, name: str) -> Any:
        ask = partial(self._client.head_object, Bucket=self.bucket, Key=name)
        try:
            return read_from_aws_if_exists(self.call, f"Look at {name}", ask)
        except ProviderError as error:
            raise self.explain(error) from error.__cause__

    def read(self, item: StoredObject, start: int, length: int, sink: Sink) -> None:
        def fetch() -> None:
            sink.restart()
            wanted = f"bytes={start}-{start + length - 1}"
            answer = self._client.get_object(Bucket=self.bucket, Key=item.name, Range=wanted, IfMatch=item.etag)
            with closing(answer["Body"]) as body:
                drain_into_sink(body.iter_chunks(BLOCK_BYTES), sink, length)

        self._attempt(f"Fetch {item.name}", fetch)

    def put(self, name: str, content: Content, replaces: StoredObject | None) -> None:
        self._attempt(
            f"Put {name}",
            lambda: self._client.put_object(
                Bucket=self.bucket, Key=name, Body=body_of(content), ContentLength=content.size,
                ContentMD5=content.md5, Metadata={_MD5: content.md5}, **_write_condition(replaces),
            ),
        )  # fmt: skip

    def begin(self, name: str, part_bytes: int, replaces: StoredObject | None) -> str:
        begin = partial(
            self._client.create_multipart_upload, Bucket=self.bucket, Key=name, Metadata={_PART_BYTES: str(part_bytes)}
        )
        return str(self._attempt(f"Begin the upload of {name}", begin)["UploadId"])

    def parts(self, name: str, upload: str) -> dict[int, StoredPart] | None:
        made: dict[int, StoredPart] = {}
        request: dict[str, Any] = {"Bucket": self.bucket, "Key": name, "UploadId": upload}
        try:
            for page in list_aws_pages(self.call, f"List the parts of {name}", self._client, "list_parts", **request):
                for row in page.get("Parts") or ():
                    number, etag = row["PartNumber"], row["ETag"]
                    md5 = self._sent.get((upload, number, etag)) or checksum_of(etag)
                    made[number] = StoredPart(row["Size"], md5, etag)
        except ProviderError as error:
            if code_of(error.__cause__) == "NoSuchUpload":
                return None
            raise self.explain(error) from error.__cause__
        return made

    def put_part(self, name: str, upload: str, number: int, content: Content) -> None:
        answer = self._attempt(
            f"Put part {number} of {name}",
            lambda: self._client.upload_part(
                Bucket=self.bucket, Key=name, UploadId=upload, PartNumber=number, Body=body_of(content),
                ContentLength=content.size, ContentMD5=content.md5,
            ),
        )  # fmt: skip
        self._sent[upload, number, answer["ETag"]] = content.md5

    def commit(self, name: str, upload: str, parts: Mapping[int, StoredPart], replaces: StoredObject | None) -> str:
        each = [{"PartNumber": number, "ETag": part.etag} for number, part in sorted(parts.items())]
        commit = partial(
            self._client.complete_multipart_upload, Bucket=self.bucket, Key=name, UploadId=upload,
            MultipartUpload={"Parts": each}, **_write_condition(replaces),
        )  # fmt: skip
        answer = self._attempt(f"Complete the upload of {name}", commit)
        if not _is_md5(answer):
            # S3 has verified each part, but returns no digest of the whole.
            return checksum_of_parts(base64.b64decode(part.md5) for _, part in sorted(parts.items()))
        return checksum_of(answer["ETag"])

    def abandon(self, name: str, upload: str) -> None:
        abort = partial(self._client.abort_multipart_upload, Bucket=self.bucket, Key=name, UploadId=upload)
        # If this fails, the parts only take up space. The error that led here is reported anyway.
        with suppress(ProviderError):
            call_aws(replace(self.call, patience=0.0), f"Abandon the upload of {name}", abort)

    @property
    def _client(self) -> Any:
        return self.session.client("s3")

    def _attempt(self, what: str, operation: Callable[[], T]) -> T:
        try:
            return call_aws(self.call, what, operation)
        except ProviderError as error:
            cause = error.__cause__
            if status_of(cause) == 412 or code_of(cause) in _MOVED_ON:
                raise ObjectChangedError from None
            if code_of(cause) in _CHANGED:
                raise ContentChangedError from None
            raise self.explain(error) from cause


def checksum_of(etag: str) -> str:
    """The ETag's checksum in the form of components/platform/streams.py. Empty if it is not an MD5."""
    match = _DIGEST.fullmatch(etag)
    return checksum_text(bytes.fromhex(match[1])) + (match[2] or "") if match else ""


def _is_md5(answer: Mapping[str, Any]) -> bool:
    """Whether the ETag of this answer is an MD5. It is not if a KMS key or the client's own key encrypts the object."""
    kms = str(answer.get("ServerSideEncryption") or "").startswith("aws:kms")
    return not kms and not answer.get("SSECustomerAlgorithm")


def _write_condition(replaces: StoredObject | None) -> dict[str, str]:
    return {"IfMatch": replaces.etag} if replaces is not None else {"IfNoneMatch": "*"}


def _utc_text(moment: Any) -> str:
    return str(moment.strftime("%Y-%m-%dT%H:%M:%SZ"))


_LIST, _READ = ("s3:ListBucket",), ("s3:GetObject",)
_WRITE = ("s3:AbortMultipartUpload", "s3:GetObject", "s3:ListMultipartUploadParts", "s3:PutObject")
# By purpose: the actions on the bucket, and those on its objects.
_ACTIONS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "list": (_LIST, ()),
    "get": (_LIST, _READ),
    "put": (_LIST, _WRITE),
}


@dataclass(frozen=True)
class AwsOpener:
    """Implements `components.platform.files.StoreOpener` with the credentials that all clients of AWS use."""

    request: StoreRequest
    session: Session
    call: Call

    def bucket(self, name: str) -> BucketStore:
        return BucketStore(self.session, self.call, name, partial(self._explain, name))

    def folder(self, address: str) -> tuple[BucketStore, str]:
        place = parse_s3_folder(address)
        if place is None:
            raise TransferError(f"`{address}` is not a folder in a bucket of S3")
        return self.bucket(place.bucket), place.prefix

    def _explain(self, bucket: str, error: ProviderError) -> ProviderError:
        """The error. If it is a refusal, the remedy has the least statements that the caller needs."""
        if code_of(error.__cause__) not in ACCESS_CODES:
            return error
        lines = ["A statement is missing in a policy of yours, or of a group that you are in. These are enough:"]
        lines += [f"  {json.dumps(statement)}" for statement in bucket_statements(self.request.purpose, bucket)]
        lines.append("`trainyard access STACK` shows what the stack grants.")
        if self.request.where.cloud is not None:
            lines.append("On the local cloud, `trainyard cloud log` shows the call and who lacked what.")
        return ProviderError(error.cause, "\n".join(lines))


def bucket_statements(purpose: str, bucket: str) -> list[Mapping[str, object]]:
    """The least statements with which a caller can list, get or put."""
    of_bucket, of_objects = _ACTIONS[purpose]
    rows = ((of_bucket, f"arn:aws:s3:::{bucket}"), (of_objects, f"arn:aws:s3:::{bucket}/*"))
    return [{"Effect": "Allow", "Action": list(actions), "Resource": arn} for actions, arn in rows if actions]


def open_aws_store(request: StoreRequest) -> AwsOpener:
    session = aws_session_of_caller(request.where)
    return AwsOpener(request, session, call_of(request.purpose, request.where.tell))


STORE_OPENERS = StoreOpeners(open_aws_store)
