# SPDX-License-Identifier: Apache-2.0
"""Authenticates requests: verifies their signatures, and maps key ids to principals.

A key id names a user's API key, or a token that this cloud gave to a run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey, RSAPublicNumbers

from localcloud.oci.oci_errors import not_authenticated
from localcloud.server import http

TOKEN_PREFIX = "ST$"
TOKEN_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Caller:
    """The caller: a user, or a resource such as a job run."""

    id: str
    name: str
    tenancy: str
    resource_kind: str = ""
    compartment: str = ""


@dataclass(frozen=True)
class Credential:
    principal: Caller
    key: RSAPublicKey


def key_fingerprint(key: RSAPublicKey) -> str:
    """The key's fingerprint as OCI prints it: MD5 of the DER form, with colons."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.md5(der, usedforsecurity=False).digest().hex(":")


class Credentials:
    """The keys with which requests can be signed at present."""

    def __init__(
        self,
        users: Mapping[str, Credential],
        issuer: RSAPrivateKey,
        uploaded: Callable[[str], Credential | None],
        current: Callable[[Caller], Caller | None],
    ) -> None:
        self._users = users
        self._uploaded = uploaded
        self._current = current
        self._issuer = issuer
        self._read_token = lru_cache(maxsize=1024)(self._verified_token)

    def find(self, key_id: str) -> Credential | None:
        """The credential of a key id: `tenancy/user/fingerprint` or `ST$token`. None if it is unknown or expired."""
        if not key_id.startswith(TOKEN_PREFIX):
            return self._users.get(key_id) or self._uploaded(key_id)
        verified = self._read_token(key_id.removeprefix(TOKEN_PREFIX))
        if verified is None:
            return None
        credential, expires_at = verified
        principal = self._current(credential.principal) if expires_at > http.current_moment() else None
        return Credential(principal, credential.key) if principal else None

    def current(self, principal: Caller) -> Caller | None:
        """The principal with its current values. None if it was deleted, even if its token has not expired."""
        return self._current(principal)

    def issue(self, principal: Caller, key: RSAPublicKey, seconds: float) -> str:
        """A resource principal session token (RPST) as OCI makes it: claims, and the key that must sign requests."""
        numbers = key.public_numbers()
        claims = {
            "sub": principal.id,
            "exp": int(http.current_moment() + seconds),
            "ttype": "res_sp",
            "res_id": principal.id,
            "res_type": principal.resource_kind,
            "res_tenant": principal.tenancy,
            "res_compartment": principal.compartment,
            "jwk": json.dumps(
                {
                    "kty": "RSA",
                    "alg": "RS256",
                    "use": "sig",
                    "n": _encode_unpadded(numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8)),
                    "e": _encode_unpadded(numbers.e.to_bytes(3)),
                }
            ),
        }
        return self.sign_token(claims)

    def sign_token(self, claims: Mapping[str, Any]) -> str:
        """A token with these claims, signed by this cloud."""
        signed = f"{_encode_token_part({'alg': 'RS256', 'typ': 'JWT'})}.{_encode_token_part(claims)}"
        return f"{signed}.{_encode_unpadded(self._issuer.sign(signed.encode(), PKCS1v15(), hashes.SHA256()))}"

    def verify_token(self, token: str) -> dict[str, Any] | None:
        """The claims of a token that this cloud signed; None for any other token."""
        try:
            signed, _, signature = token.rpartition(".")
            self._issuer.public_key().verify(_decode_unpadded(signature), signed.encode(), PKCS1v15(), hashes.SHA256())
            claims: dict[str, Any] = json.loads(_decode_unpadded(signed.split(".")[1]))
        except (InvalidSignature, ValueError, IndexError):
            return None
        return claims

    def _verified_token(self, token: str) -> tuple[Credential, float] | None:
        claims = self.verify_token(token)
        if claims is None:
            return None
        try:
            jwk = json.loads(claims["jwk"])
            numbers = RSAPublicNumbers(
                int.from_bytes(_decode_unpadded(jwk["e"])), int.from_bytes(_decode_unpadded(jwk["n"]))
            )
            principal = Caller(
                id=claims["res_id"],
                name=claims["res_id"],
                tenancy=claims["res_tenant"],
                resource_kind=claims["res_type"],
                compartment=claims["res_compartment"],
            )
            return Credential(principal, numbers.public_key()), float(claims["exp"])
        except (ValueError, KeyError):
            return None


def _encode_token_part(value: Mapping[str, Any]) -> str:
    return _encode_unpadded(json.dumps(value, separators=(",", ":")).encode())


def _encode_unpadded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decode_unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


MAXIMUM_SKEW_SECONDS = 300
_PARAMETER = re.compile(r'\s*(\w+)="([^"]*)"\s*(?:,|$)')
_ALWAYS_SIGNED = ("(request-target)", "host")
_BODY_SIGNED = ("x-content-sha256", "content-type", "content-length")
METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True)
class Signature:
    """The parts of an Authorization header."""

    key_id: str
    headers: tuple[str, ...]
    value: bytes


def parse_signature(authorization: str) -> Signature:
    scheme, _, rest = authorization.partition(" ")
    parameters: dict[str, str] = {}
    position = 0
    # One parameter after the other: searching at every position would take quadratic time.
    while scheme.lower() == "signature" and (match := _PARAMETER.match(rest, position)):
        parameters[match[1]] = match[2]
        position = match.end()
    if not {"keyId", "headers", "signature"} <= parameters.keys():
        raise not_authenticated("there is no Signature in the Authorization header")
    if parameters.get("algorithm") != "rsa-sha256":
        raise not_authenticated("the algorithm must be rsa-sha256")
    try:
        value = base64.b64decode(parameters["signature"], validate=True)
    except ValueError:
        raise not_authenticated("the signature is not base64") from None
    names = tuple(parameters["headers"].lower().split())
    if len(set(names)) < len(names):
        raise not_authenticated("a header is signed twice")
    return Signature(parameters["keyId"], names, value)


def verify_signature(
    method: str,
    target: str,
    headers: Mapping[str, str],
    find_key: Callable[[str], RSAPublicKey | None],
    body_may_be_unsigned: bool = False,
) -> str:
    """Verifies the signature and the date of a request, and returns its key id. `check_body` verifies its body."""
    signature = parse_signature(headers.get("authorization", ""))
    needed = list(_ALWAYS_SIGNED)
    if method in METHODS_WITH_BODY and not body_may_be_unsigned:
        needed += _BODY_SIGNED
    if lacking := [name for name in needed if name not in signature.headers]:
        raise not_authenticated(f"the signature must cover {', '.join(lacking)}")
    if "date" not in signature.headers and "x-date" not in signature.headers:
        raise not_authenticated("the signature must cover date or x-date")
    text = headers.get("x-date" if "x-date" in signature.headers else "date", "")
    try:
        sent = _parse_http_date(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        raise not_authenticated("the date is not an HTTP date") from None
    if abs(http.current_moment() - sent) > MAXIMUM_SKEW_SECONDS:
        raise not_authenticated(f"the date is more than {MAXIMUM_SKEW_SECONDS} seconds away from the cloud's clock")
    key = find_key(signature.key_id)
    if key is None:
        raise not_authenticated("this cloud does not know the key")
    try:
        key.verify(
            signature.value, signing_string(method, target, headers, signature.headers), PKCS1v15(), hashes.SHA256()
        )
    except InvalidSignature:
        raise not_authenticated("the signature does not match the request") from None
    return signature.key_id


def check_body_digest(headers: Mapping[str, str], sha256: bytes) -> None:
    """Raises if the signed digest is not the digest of the body."""
    claimed = headers.get("x-content-sha256")
    if claimed is not None and claimed != base64.b64encode(sha256).decode():
        raise not_authenticated("x-content-sha256 is not the digest of the body")


def signing_string(method: str, target: str, headers: Mapping[str, str], names: tuple[str, ...]) -> bytes:
    lines = []
    for name in names:
        if name == "(request-target)":
            lines.append(f"{name}: {method.lower()} {target}")
        elif name in headers:
            lines.append(f"{name}: {headers[name]}")
        else:
            raise not_authenticated(f"the signed header {name} is not in the request")
    return "\n".join(lines).encode()


def sign_request(
    method: str, target: str, host: str, body: bytes, key_id: str, key: RSAPrivateKey, date: str = ""
) -> dict[str, str]:
    """The headers of a signed JSON request. Our own small calls use this, because importing the SDK takes long."""
    headers = {"date": date or formatdate(http.current_moment(), usegmt=True), "host": host}
    names: tuple[str, ...] = ("date", *_ALWAYS_SIGNED)
    if method in METHODS_WITH_BODY:
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
        headers |= {"x-content-sha256": digest, "content-type": "application/json", "content-length": str(len(body))}
        names += _BODY_SIGNED
    value = base64.b64encode(key.sign(signing_string(method, target, headers, names), PKCS1v15(), hashes.SHA256()))
    headers["authorization"] = (
        f'Signature version="1",keyId="{key_id}",algorithm="rsa-sha256",headers="{" ".join(names)}",'
        f'signature="{value.decode()}"'
    )
    return headers


@lru_cache(maxsize=64)  # a busy client sends the same date for a second
def _parse_http_date(date: str) -> float:
    return parsedate_to_datetime(date).timestamp()
