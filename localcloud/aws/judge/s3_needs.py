# SPDX-License-Identifier: Apache-2.0
"""What calls of S3 need: an action on the bucket or on the object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote
from xml.etree import ElementTree

from catalog.tables import table
from localcloud.aws.calls import AwsCall
from localcloud.aws.errors import Reason, RefusalError
from localcloud.aws.judge.decide import Need

Keys = Mapping[str, Sequence[str]]
_HEADERS = ("x-amz-server-side-encryption", "x-amz-acl")


def needs(call: AwsCall, common: Keys) -> Iterator[Need]:
    bucket, key = str(call.parameters["Bucket"]), str(call.parameters["Key"])
    names = table("aws_calls")["actions"]["s3"].get(call.operation, [call.operation])
    keys = {**common, **_own_keys(call)}
    if not bucket:
        yield from (Need(f"s3:{name}", "*", keys) for name in names)
        return
    keyed = _deleted(call.body) if call.operation == "DeleteObjects" else [key] if key else []
    version = "Version" if "versionId" in call.parameters and call.operation.endswith(("Object", "Tagging")) else ""
    for name in names:
        for one in keyed:
            yield Need(f"s3:{name}{version}", f"arn:aws:s3:::{bucket}/{one}", keys)
        if not keyed:
            yield Need(f"s3:{name}", f"arn:aws:s3:::{bucket}", keys)
    if source := call.request.headers.get("x-amz-copy-source"):
        yield Need("s3:GetObject", f"arn:aws:s3:::{unquote(source.partition('?')[0]).lstrip('/')}", keys)
    if "x-amz-tagging" in call.request.headers and key:
        yield Need("s3:PutObjectTagging", f"arn:aws:s3:::{bucket}/{key}", keys)


def _own_keys(call: AwsCall) -> dict[str, Sequence[str]]:
    keys: dict[str, Sequence[str]] = {
        f"s3:{name}": (call.text(name),) for name in ("prefix", "delimiter", "max-keys") if name in call.parameters
    }
    headers = call.request.headers
    keys |= {f"s3:{name}": (headers[name],) for name in _HEADERS if name in headers}
    return {**keys, **({"s3:if-none-match": (headers["if-none-match"],)} if "if-none-match" in headers else {})}


def _deleted(body: bytes) -> list[str]:
    """The objects that a call deletes at once."""
    if b"<!" in body:  # no client sends declarations, which could name entities without end
        body = b""
    try:
        names = [element.text or "" for element in ElementTree.fromstring(body).iter() if element.tag.endswith("Key")]
    except (ElementTree.ParseError, ValueError):
        names = []
    if not names:
        raise RefusalError(Reason.MALFORMED, "The XML you provided was not well-formed")
    return names
