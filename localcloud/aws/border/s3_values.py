# SPDX-License-Identifier: Apache-2.0
"""Parses an S3 request: those headers, query parameters and parts of the body that botocore's model has."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from email.utils import formatdate
from typing import Any

from localcloud.aws.aws_errors import Reason, RefusalError, aws_refusal
from localcloud.aws.border import xml_body
from localcloud.aws.border.parameters import canonical_value
from localcloud.aws.calls import AwsCall, RawCall

_METADATA = "x-amz-meta-"
_ALGORITHM = "x-amz-sdk-checksum-algorithm"
# Other checksums would need more libraries.
_CHECKSUMS = ("CRC32", "CRC32C", "SHA1", "SHA256")
# S3 ignores a range that it cannot parse.
_RANGE = re.compile(r"bytes=[0-9]{0,19}-[0-9]{0,19}", re.ASCII)
# Operations whose model has an optional body.
_MAY_BE_EMPTY = frozenset({"CreateBucket", "PutBucketAcl", "PutObjectAcl"})
# moto would parse the content of an object with one of these types as a form.
_FORMS = ("application/x-www-form-urlencoded", "application/x-url-encoded", "multipart/form-data")
_OWN = ("Bucket", "Key", "Source", "SourceVersion")


def read_s3_call(raw: RawCall, model: Any) -> AwsCall:
    """The value of an S3 request."""
    _check_content(raw)
    parameters: dict[str, Any] = {name: raw.parameters[name] for name in _OWN}
    if not takes_copies(raw.operation):
        parameters |= {"Source": "", "SourceVersion": ""}
    for name, shape in members_at(model, "querystring"):
        if name in raw.parameters and shape.type_name == "list":
            parameters[name] = raw.parameters[name]
        elif name in raw.parameters:
            parameters[name] = _stripped_value(raw.parameters[name], shape.type_name, name)
    if parameters.get("versionId") == "":
        raise aws_refusal("object version")
    if "uploadId" in parameters and raw.operation.startswith("UploadPart") and "partNumber" not in parameters:
        raise RefusalError(Reason.MALFORMED, "This operation needs a part number")
    call = AwsCall(raw.service, raw.region, raw.operation, parameters, control=raw.control)
    call = replace(call, headers=dict(_read_s3_headers(raw, model, call)))
    shape = model.input_shape
    if shape is None:
        return call
    name, namespace, payload = payload_shape(shape)
    if payload is None:
        return call
    if payload.type_name in ("blob", "string"):
        if call.operation == "PutBucketPolicy":
            # refusals/documents.py checks the policy itself later.
            try:
                raw.body.decode()
            except UnicodeDecodeError:
                message = "Policies must be valid JSON and the first byte must be '{'"
                raise RefusalError(Reason.MALFORMED, message, "MalformedPolicy") from None
        return replace(call, body=raw.body)
    if not raw.body:
        if raw.operation in _MAY_BE_EMPTY:
            return call
        raise RefusalError(Reason.MALFORMED, "Request body is empty", "MissingRequestBodyError")
    document = xml_body.read_xml(raw.body, name, namespace, payload)
    if raw.operation == "DeleteObjects":
        _check_deleted(document["Objects"])
    return replace(call, document=document)


def payload_shape(shape: Any) -> tuple[str, str, Any]:
    """The body in an operation's model: element name, XML namespace, and shape. The shape is None if there is no
    body."""
    named = shape.serialization.get("payload")
    if named is not None:
        payload = shape.members[named]
    elif any("location" not in member.serialization for member in shape.members.values()):
        payload = shape
    else:
        return "", "", None
    namespace = payload.serialization.get("xmlNamespace", {}).get("uri", "")
    return payload.serialization.get("name", named), namespace, payload


def takes_copies(operation: str) -> bool:
    return operation in ("CopyObject", "UploadPartCopy")


def members_at(model: Any, location: str) -> Iterator[tuple[str, Any]]:
    """The members at a location of the request, such as `header`: their names in requests, and their shapes."""
    shape = model.input_shape
    for member in shape.members.values() if shape is not None else ():
        if member.serialization.get("location") == location:
            yield member.serialization["name"], member


def _read_s3_headers(raw: RawCall, model: Any, call: AwsCall) -> Iterator[tuple[str, str]]:
    if any(True for _ in members_at(model, "headers")):
        yield from ((name, text) for name, text in raw.headers.items() if name.startswith(_METADATA))
    for named, shape in members_at(model, "header"):
        name = named.lower()
        if name not in raw.headers or name in ("content-length", "x-amz-copy-source", _ALGORITHM):
            continue
        text = raw.headers[name]
        if name == "content-type" and text.partition(";")[0].strip().lower() in _FORMS:
            raise RefusalError(Reason.UNKNOWN_OPERATION, "The local AWS does not support uploads as forms")
        if name == "range" and not _RANGE.fullmatch(text):
            continue
        if name == "expires" or shape.type_name == "list":
            yield name, text
            continue
        value = _stripped_value(text, shape.type_name, name)
        if shape.type_name == "timestamp" and "modified-since" in name:
            from botocore.utils import parse_timestamp

            value = formatdate(parse_timestamp(value).timestamp(), usegmt=True)
        yield name, value
    # Without the checksum and its algorithm in headers, moto would search the content for them.
    algorithm = raw.headers.get(_ALGORITHM, "").upper()
    header = f"x-amz-checksum-{algorithm.lower()}"
    if not algorithm or all(name != _ALGORITHM for name, _ in members_at(model, "header")):
        return
    if header in raw.headers:
        yield _ALGORITHM, algorithm
    elif algorithm in _CHECKSUMS:
        yield _ALGORITHM, algorithm
        yield header, compute_body_checksum(raw.body, algorithm)


def _stripped_value(text: str, kind: str, name: str) -> str:
    return canonical_value(text.strip() if kind != "string" else text, kind, name)


def _check_content(raw: RawCall) -> None:
    """Verifies the digest and the checksums in the headers."""
    if (stated := raw.headers.get("content-md5")) is not None:
        if not _is_base64(stated, 16):
            raise aws_refusal("content digest")
        digest = hashlib.md5(raw.body, usedforsecurity=False).digest()
        if not hmac.compare_digest(base64.b64decode(stated), digest):
            raise aws_refusal("content of digest")
    for algorithm in _CHECKSUMS:
        stated = raw.headers.get(f"x-amz-checksum-{algorithm.lower()}")
        # CompleteMultipartUpload states the checksum of the whole object, but its body is a list of parts.
        if (
            stated is not None
            and raw.operation != "CompleteMultipartUpload"
            and compute_body_checksum(raw.body, algorithm) != stated
        ):
            raise aws_refusal("content of checksum", algorithm=algorithm)


def _check_deleted(rows: list[Mapping[str, str]]) -> None:
    if not rows or any(row["Key"] == "" or row.get("VersionId") == "" for row in rows):
        raise xml_body.malformed_xml()


def _is_base64(text: str, length: int) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == length
    except (binascii.Error, ValueError):
        return False


def compute_body_checksum(body: bytes, algorithm: str) -> str:
    from moto.s3.utils import compute_checksum

    return str(compute_checksum(body, algorithm), "ascii")
