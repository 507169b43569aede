# SPDX-License-Identifier: Apache-2.0
"""`s3://<bucket>/<folder>`: a folder in a bucket of Amazon S3."""

from __future__ import annotations

import hashlib
import http.client
import re
import time
from collections.abc import Iterator, Mapping
from urllib.parse import quote, unquote
from xml.etree import ElementTree

from launcher import object_store
from launcher.aws_dl1.fetch import UNSIGNED, AwsError, Identity, bucket_place, signed
from launcher.errors import LaunchError
from launcher.object_store import BAD_DIGEST, STALE, Body, Connection, Refusal
from launcher.printing import LinePrinter
from launcher.stores import Stored, StoreError

_URI = re.compile(r"s3://([^/]+)/?(.*)")
_KINDS = {
    "BadDigest": BAD_DIGEST, "XAmzContentSHA256Mismatch": BAD_DIGEST, "InvalidDigest": BAD_DIGEST,
    "RequestTimeTooSkewed": STALE, "ExpiredToken": STALE, "TokenRefreshRequired": STALE,
}  # fmt: skip


class Signer:
    """Signs as this node's role, with signature version 4. Files are not signed: S3 verifies their MD5 instead."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self.region = identity.region
        self.offset = 0.0

    def headers(self, method: str, target: str, host: str, headers: Mapping[str, str], body: Body) -> dict[str, str]:
        """The given headers and those of the signature."""
        digest = (
            UNSIGNED if body is not None and not isinstance(body, bytes) else hashlib.sha256(body or b"").hexdigest()
        )
        try:
            credentials = self._identity.credentials()
        except AwsError as error:
            raise StoreError(error.status, f"this node has no credentials of AWS: {error}") from None
        now = time.time() + self.offset
        return signed(method, host, target, headers, digest, "s3", self.region, credentials, now)

    def refusal(self, status: int, content: bytes) -> Refusal | None:
        """Classifies a refusal by S3's own error code."""
        root = _parse_xml(content)
        name = root.findtext("Code") if root is not None else None
        if root is None or not name:
            return None
        kind = _KINDS.get(name, "")
        if kind == STALE:
            self._identity.renew()
        return Refusal(f"{name}: {root.findtext('Message')}", kind)


class Store:
    """Amazon S3. All connections share one signer: its role and its clock."""

    def __init__(self, environment: Mapping[str, str], say: LinePrinter) -> None:
        self._environment = environment
        self._say = say
        self._signer: Signer | None = None

    def folder(self, uri: str) -> BucketFolder:
        """Opens a folder with a connection of its own."""
        match = _URI.fullmatch(uri)
        if not match:
            raise LaunchError(f"`{uri}` is not a folder in a bucket: write s3://<bucket>/<folder>")
        if self._signer is None:
            self._signer = _open_signer(self._environment)
        endpoint, place = bucket_place(self._environment, quote(match[1], safe=""), self._signer.region)
        return BucketFolder(uri, Connection(endpoint, self._signer, self._say), place, match[2])


class BucketFolder(object_store.BucketFolder):
    """A folder in a bucket of Amazon S3."""

    mtime_header = "x-amz-meta-mtime"
    page_size = 1000

    def pages(self, prefix: str) -> Iterator[Stored]:
        """Lists page by page. Names come encoded, because XML cannot express some characters."""
        token = ""
        while True:
            query = f"encoding-type=url&list-type=2&max-keys={self.page_size}&prefix={encode_query_value(prefix)}"
            if token:
                query = f"continuation-token={encode_query_value(token)}&{query}"
            page = _parse_xml(self.connection.call("GET", f"{self.place or '/'}?{query}").content)
            if page is None:
                raise StoreError(0, f"the answer of {self.host} to a list is not XML")
            for row in page.iter("Contents"):
                name = unquote((row.findtext("Key") or "").replace("+", " "))[len(self.prefix) :]
                size = int(row.findtext("Size") or 0)
                yield Stored(name, row.findtext("LastModified") or "", size, row.findtext("ETag") or "")
            token = page.findtext("NextContinuationToken") or ""
            if not token:
                return


def encode_query_value(text: str) -> str:
    """A value of a query, encoded as signatures require."""
    return quote(text, safe="-_.~")


def _open_signer(environment: Mapping[str, str]) -> Signer:
    try:
        signer = Signer(Identity(environment))
    except (AwsError, OSError, http.client.HTTPException) as error:
        raise LaunchError(
            f"AWS_REGION is not set, and the metadata service does not answer ({error}): start the image as a run of"
            " its stack, or set AWS_REGION and credentials"
        ) from None
    if not signer.region:
        raise LaunchError("AWS_REGION is not set, so the address of the bucket is not known: set it")
    return signer


def _parse_xml(content: bytes) -> ElementTree.Element | None:
    """An answer of S3, its element names without their namespace."""
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError:
        return None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root
