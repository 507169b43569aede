# SPDX-License-Identifier: Apache-2.0
"""Reads an AWS request as a `RawCall`: operation and parameters as the sender wrote them.

`localcloud/aws/border` turns it into an `AwsCall`. Access is checked for that value, and moto's request is written from
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from localcloud.aws import s3_operations
from localcloud.aws.aws_errors import Reason, RefusalError
from localcloud.aws.services import AwsService, Wire
from localcloud.aws.sigv4 import STREAMED_UNSIGNED
from localcloud.server.http import Request, parameter_pairs, parse_strict_json

_MOST_PARAMETERS = 5000
_READS = ("Describe", "List", "Get", "Head", "Search", "Filter", "BatchGet", "Select", "Lookup", "Simulate", "Decode")
_FORM = re.compile(r"application/x-www-form-urlencoded(; *charset=utf-8)?", re.ASCII)
_JSON = re.compile(r"application/(x-amz-json-1\.[01]|json)(; *charset=utf-8)?", re.ASCII)
_TARGET = re.compile(r"([A-Za-z0-9_]+)\.([A-Za-z0-9]+)", re.ASCII)
_ACTION = re.compile(r"[A-Za-z0-9]+", re.ASCII)
# Strict, because the region becomes part of ARNs, and moto reads it from a header.
_REGION = re.compile(r"[a-z]{2,4}(-[a-z]{2,12}){1,3}-[0-9]{1,2}", re.ASCII)
_UTF8 = re.compile("utf-8", re.IGNORECASE)
_ENCODING = "content-encoding"
_SIZE = re.compile(rb"[0-9a-fA-F]{1,8}")
_CHECKSUM = re.compile(r"x-amz-checksum-[a-z0-9]+", re.ASCII)
_LONGEST_LINE = 1024


@dataclass(frozen=True)
class RawCall:
    """A request as its sender wrote it. Only calls of S3 have a `body`. `control`: it is a call of S3 Control."""

    service: AwsService
    region: str
    operation: str
    parameters: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(repr=False, default=b"")
    control: bool = False

    @property
    def name(self) -> str:
        """The name in faults and in the log, such as `ec2.RunInstances`."""
        return f"{self.service.prefix}.{self.operation}"


@dataclass(frozen=True)
class AwsCall(RawCall):
    """A validated call. Access is checked for it, and moto's request is written from it alone.

    `parameters` has only members of the operation's model: flat names for EC2 and query services, nested values for
    JSON services, and for S3 the bucket, the key and the query. Only S3 has `headers`, a `document` (a parsed XML body)
    and a `body` (the content of an object, or a policy).
    """

    document: Any = None

    @property
    def backend(self) -> str:
        """The name of moto's backend for the service."""
        return "s3control" if self.control else self.service.backend

    @property
    def writes(self) -> bool:
        # Their names say that they only read. But they create credentials, which must be valid after a restart.
        makes = self.operation in ("GetSessionToken", "GetFederationToken", "GetAuthorizationToken")
        return makes or not self.operation.startswith(_READS)

    def text(self, name: str) -> str:
        """A parameter; "" if it is missing or not text."""
        value = self.parameters.get(name)
        return value if isinstance(value, str) else ""


def read_raw_call(service: AwsService, region: str, request: Request, body: bytes) -> RawCall:
    """Reads a request. Refuses requests that another parser could read differently."""
    if not _REGION.fullmatch(region):
        raise RefusalError(Reason.MALFORMED, "Credential should be scoped to a valid region")
    if service.wire is Wire.S3:
        operation, parameters = s3_operations.identify_s3_operation(request)
        headers, content = decode_chunks(request.headers, body)
        return RawCall(service, region, operation, parameters, headers, content, s3_operations.is_control(request))
    path, _, query = request.target.partition("?")
    if path != "/" or "content-encoding" in request.headers:
        raise RefusalError(Reason.MALFORMED, "The request is not one of this service")
    read = _json_call if service.wire is Wire.JSON else _query_call
    operation, parameters = read(request, query, body)
    target = request.headers.get("x-amz-target", "") if service.wire is Wire.JSON else ""
    return RawCall(service, region, operation, parameters, {"x-amz-target": target})


def _query_call(request: Request, query: str, body: bytes) -> tuple[str, Mapping[str, Any]]:
    if request.method not in ("GET", "POST") or (body and (query or request.method == "GET")):
        raise RefusalError(Reason.MALFORMED, "Parameters must be in the body of a POST or in the query, not in both")
    if body and not _is_type(request, _FORM):
        raise RefusalError(Reason.MALFORMED, "The content type must be application/x-www-form-urlencoded")
    try:
        text = body.decode() or query
        pairs = parameter_pairs(text, _MOST_PARAMETERS)
    except ValueError:
        raise RefusalError(Reason.MALFORMED, "The body is not a list of parameters") from None
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise RefusalError(Reason.MALFORMED, "A parameter is given twice")
    operation = parameters.get("Action", "")
    if not _ACTION.fullmatch(operation):
        raise RefusalError(Reason.UNKNOWN_OPERATION, "The action is not valid for this web service")
    return operation, parameters


def _json_call(request: Request, query: str, body: bytes) -> tuple[str, Mapping[str, Any]]:
    if request.method != "POST" or (query and "X-Amz-Signature=" not in query):
        raise RefusalError(Reason.MALFORMED, "The request must be a POST without a query")
    if not _is_type(request, _JSON):
        raise RefusalError(Reason.MALFORMED, "The content type must be one of application/x-amz-json")
    target = _TARGET.fullmatch(request.headers.get("x-amz-target", ""))
    if target is None:
        raise RefusalError(Reason.UNKNOWN_OPERATION, "X-Amz-Target names no operation")
    try:
        parameters = parse_strict_json(body or b"{}")
    except (ValueError, RecursionError):
        raise RefusalError(Reason.MALFORMED, "The body is not valid JSON") from None
    if not isinstance(parameters, dict):
        raise RefusalError(Reason.MALFORMED, "The body is not a JSON object")
    return target[2], parameters


def _is_type(request: Request, wanted: re.Pattern[str]) -> bool:
    """Whether the content type has an accepted spelling. Another parser could read other spellings differently."""
    return wanted.fullmatch(_UTF8.sub("utf-8", request.headers.get("content-type", ""))) is not None


def decode_chunks(headers: Mapping[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a request without the encoding `aws-chunked`. A trailing checksum becomes a
    header."""
    plain = dict(headers)
    encodings = [one.strip() for one in plain.pop(_ENCODING, "").split(",")]
    if rest := ", ".join(one for one in encodings if one not in ("", "aws-chunked")):
        plain[_ENCODING] = rest
    if headers.get("x-amz-content-sha256") != STREAMED_UNSIGNED:
        return plain, body
    pieces, end = _split_chunks(body)
    content = b"".join(pieces)
    if headers.get("x-amz-decoded-content-length") != str(len(content)):
        raise RefusalError(
            Reason.MALFORMED, "The body does not have the length in x-amz-decoded-content-length", "IncompleteBody"
        )
    announced = headers.get("x-amz-trailer", "").lower()
    for name, value in _read_trailers(body, end):
        if name != announced or not _CHECKSUM.fullmatch(name) or name in plain:
            raise RefusalError(Reason.MALFORMED, "The body does not have the trailer that x-amz-trailer names")
        plain[name] = value
    return plain, content


def _split_chunks(body: bytes) -> tuple[list[memoryview], int]:
    """The chunks of a body, and the position of its trailers."""
    whole, at = memoryview(body), 0
    pieces: list[memoryview] = []
    while True:
        line = body.find(b"\r\n", at, at + _LONGEST_LINE)
        size = _SIZE.fullmatch(body[at : max(line, at)])
        if size is None:
            raise _broken_chunks()
        at, length = line + 2, int(size[0], 16)
        if not length:
            return pieces, at
        if body[at + length : at + length + 2] != b"\r\n":
            raise _broken_chunks()
        pieces.append(whole[at : at + length])
        at += length + 2


def _read_trailers(body: bytes, at: int) -> Iterator[tuple[str, str]]:
    if len(body) - at > _LONGEST_LINE:
        raise _broken_chunks()
    try:
        lines = body[at:].decode("ascii").split("\r\n")
    except UnicodeDecodeError:
        raise _broken_chunks() from None
    for line in filter(None, lines):
        name, colon, value = line.partition(":")
        if not colon:
            raise _broken_chunks()
        yield name.lower(), value.strip()


def _broken_chunks() -> RefusalError:
    return RefusalError(Reason.MALFORMED, "The body is not valid aws-chunked", "IncompleteBody")
