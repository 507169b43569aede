# SPDX-License-Identifier: Apache-2.0
"""Verifies AWS's signatures, version 4. A valid one proves who sent a request, and that nobody changed it."""

from __future__ import annotations

import calendar
import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from posixpath import normpath
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes

from localcloud.aws.aws_errors import Reason, RefusalError
from localcloud.server import http
from localcloud.server.http import Request

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
STREAMED_UNSIGNED = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
STREAMED_SIGNED = (f"STREAMING-{ALGORITHM}-PAYLOAD", f"STREAMING-{ALGORITHM}-PAYLOAD-TRAILER")
MAXIMUM_SKEW_SECONDS = 15 * 60
_LONGEST_PRESIGNED_SECONDS = 7 * 24 * 3600
_PART = re.compile(r"\s*(Credential|SignedHeaders|Signature)=([^,\s]+)\s*(?:,|$)")
_SHA256 = re.compile("[0-9a-f]{64}")
# These headers need not be signed, because proxies may change them.
_MAY_BE_UNSIGNED = frozenset({"x-amzn-trace-id", "x-amz-security-token"})
# In a presigned URL this header need not be signed either, because its value is part of the signed text anyway.
_OF_LINKS = frozenset({"x-amz-content-sha256"})


@dataclass(frozen=True)
class Scope:
    date: str
    region: str
    service: str

    @property
    def text(self) -> str:
        return f"{self.date}/{self.region}/{self.service}/aws4_request"


@dataclass(frozen=True)
class SignedRequest:
    """The parts of a signature, before it is verified."""

    key_id: str
    scope: Scope
    headers: tuple[str, ...]
    signature: str
    moment: str
    token: str
    presigned: bool = False
    lives_seconds: float = 0.0


def is_signed(request: Request) -> bool:
    authorization = request.headers.get("authorization", "")
    query = request.target.partition("?")[2]
    return authorization.startswith("AWS") or "X-Amz-Algorithm=" in query or "AWSAccessKeyId=" in query


def parse_sigv4(request: Request) -> SignedRequest:
    """The signature of a request, from its headers or from its query."""
    authorization = request.headers.get("authorization", "")
    try:
        return _from_header(request, authorization) if authorization else _from_query(request)
    except (KeyError, ValueError):
        raise RefusalError(
            Reason.MALFORMED, f"Authorization must be {ALGORITHM} with Credential, SignedHeaders and Signature"
        ) from None


def _from_header(request: Request, authorization: str) -> SignedRequest:
    algorithm, _, rest = authorization.partition(" ")
    if algorithm != ALGORITHM:
        raise RefusalError(Reason.MALFORMED, f"The only supported algorithm is {ALGORITHM}")
    parts: dict[str, str] = {}
    position = 0
    while match := _PART.match(rest, position):
        parts[match[1]] = match[2]
        position = match.end()
    key_id, scope = _parse_credential(parts["Credential"])
    return SignedRequest(
        key_id, scope, tuple(parts["SignedHeaders"].lower().split(";")), parts["Signature"],
        request.headers.get("x-amz-date", ""), request.headers.get("x-amz-security-token", ""),
    )  # fmt: skip


def _from_query(request: Request) -> SignedRequest:
    query = dict(parse_qsl(request.target.partition("?")[2], keep_blank_values=True, max_num_fields=500))
    if query.get("X-Amz-Algorithm") != ALGORITHM:
        raise RefusalError(Reason.MALFORMED, f"The only supported algorithm is {ALGORITHM}")
    key_id, scope = _parse_credential(query["X-Amz-Credential"])
    lives = int(query["X-Amz-Expires"])
    if not 0 < lives <= _LONGEST_PRESIGNED_SECONDS:
        raise RefusalError(Reason.MALFORMED, "X-Amz-Expires must be from 1 to 604800")
    return SignedRequest(
        key_id, scope, tuple(query["X-Amz-SignedHeaders"].lower().split(";")), query["X-Amz-Signature"],
        query["X-Amz-Date"], query.get("X-Amz-Security-Token", ""), presigned=True, lives_seconds=lives,
    )  # fmt: skip


def _parse_credential(text: str) -> tuple[str, Scope]:
    key_id, date, region, service, end = text.split("/")
    if end != "aws4_request":
        raise ValueError(text)
    return key_id, Scope(date, region, service)


def check_freshness(signed: SignedRequest) -> None:
    """Refuses a request that is too old, or from the future."""
    try:
        sent = calendar.timegm(time.strptime(signed.moment, "%Y%m%dT%H%M%SZ"))
    except ValueError:
        raise RefusalError(Reason.MALFORMED, "X-Amz-Date must be a date like 20260131T120000Z") from None
    if not signed.moment.startswith(signed.scope.date):
        raise RefusalError(Reason.BAD_SIGNATURE, "Date in Credential scope does not match X-Amz-Date")
    age = http.current_moment() - sent
    oldest = signed.lives_seconds if signed.presigned else MAXIMUM_SKEW_SECONDS
    if age < -MAXIMUM_SKEW_SECONDS or age > oldest:
        if signed.presigned:
            raise RefusalError(Reason.DENIED, "Request has expired")
        raise RefusalError(
            Reason.SKEWED,
            "Signature expired: the difference between the request time and the current time is too large",
        )


def verify_sigv4(request: Request, signed: SignedRequest, secret: str, body_digest: str | None) -> None:
    """Refuses a request that was not signed with this secret. `body_digest`: the digest of the received body. It is
    needed only if the headers do not state one."""
    if "host" not in signed.headers:
        raise RefusalError(Reason.BAD_SIGNATURE, "'Host' must be a signed header")
    unsigned = [name for name in request.headers if name.startswith("x-amz-") and name not in signed.headers]
    if lacking := sorted(set(unsigned) - (_MAY_BE_UNSIGNED | (_OF_LINKS if signed.presigned else frozenset()))):
        raise RefusalError(
            Reason.DENIED, f"There were headers present in the request which were not signed: {lacking[0]}"
        )
    payload = stated_payload(request, signed) or body_digest or ""
    text = "\n".join((
        ALGORITHM, signed.moment, signed.scope.text,
        hashlib.sha256(_canonical_request(request, signed, payload)).hexdigest(),
    ))  # fmt: skip
    expected = hmac.new(signing_key(secret, signed.scope), text.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), signed.signature.encode()):
        raise RefusalError(
            Reason.BAD_SIGNATURE,
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret"
            " Access Key and signing method.",
        )


def stated_payload(request: Request, signed: SignedRequest) -> str:
    """What the request states about its body: a digest, a keyword for an unsigned body, or "" for nothing."""
    if signed.presigned and signed.scope.service == "s3":
        return request.headers.get("x-amz-content-sha256", UNSIGNED_PAYLOAD)
    return request.headers.get("x-amz-content-sha256", "")


def check_body_hash(request: Request, signed: SignedRequest, body_digest: str) -> None:
    """Refuses a body whose digest is not the signed one."""
    stated = stated_payload(request, signed)
    if _SHA256.fullmatch(stated) and stated != body_digest:
        raise RefusalError(
            Reason.BAD_DIGEST, "The provided 'x-amz-content-sha256' header does not match what was computed."
        )
    if stated in STREAMED_SIGNED:
        raise RefusalError(Reason.UNKNOWN_OPERATION, "The local AWS does not support bodies with signed chunks")
    keywords = (UNSIGNED_PAYLOAD, STREAMED_UNSIGNED, "")
    if stated not in keywords and not _SHA256.fullmatch(stated):
        raise RefusalError(Reason.MALFORMED, "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, or a valid sha256 value")


def signing_key(secret: str, scope: Scope) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (scope.date, scope.region, scope.service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def _canonical_request(request: Request, signed: SignedRequest, payload: str) -> bytes:
    path, _, query = request.target.partition("?")
    pairs: list[tuple[str, str]] = []
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        if unquote(name) != "X-Amz-Signature":
            pairs.append((_requote_path(name), _requote_path(value)))
    lines = [
        request.method,
        _canonical_path(path, signed.scope.service),
        "&".join(f"{name}={value}" for name, value in sorted(pairs)),
        *(f"{name}:{_canonical_value(request.headers, name)}" for name in signed.headers),
        "",
        ";".join(signed.headers),
        payload,
    ]
    return "\n".join(lines).encode()


def _canonical_path(path: str, service: str) -> str:
    if service == "s3":
        return quote(unquote_to_bytes(path), safe="/-_.~")
    normal = normpath(path) if path else "/"
    if path.endswith("/") and normal != "/":
        normal += "/"
    return quote("/" + normal.lstrip("/"), safe="/-_.~")


def _requote_path(text: str) -> str:
    return quote(unquote_to_bytes(text), safe="-_.~")


def _canonical_value(headers: Mapping[str, str], name: str) -> str:
    return " ".join(headers.get(name, "").split())
