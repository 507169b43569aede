# SPDX-License-Identifier: Apache-2.0
"""Maps a key id to its principal. The key id names a user's API key, or a token that this cloud gave to a run."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey, RSAPublicNumbers

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


def fingerprint(key: RSAPublicKey) -> str:
    """The key's fingerprint as OCI prints it: MD5 of the DER form, with colons."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.md5(der, usedforsecurity=False).digest().hex(":")


class Credentials:
    """The keys in force."""

    def __init__(
        self,
        users: Mapping[str, Credential],
        issuer: RSAPrivateKey,
        uploaded: Callable[[str], Credential | None],
        present: Callable[[Caller], Caller | None],
    ) -> None:
        self._users = users
        self._uploaded = uploaded
        self._present = present
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
        principal = self._present(credential.principal) if expires_at > http.now() else None
        return Credential(principal, credential.key) if principal else None

    def present(self, principal: Caller) -> Caller | None:
        """The principal with its present values; None if it was deleted, even if its token is still valid."""
        return self._present(principal)

    def issue(self, principal: Caller, key: RSAPublicKey, seconds: float) -> str:
        """A resource principal session token (RPST) as OCI makes it: claims, and the key that must sign requests."""
        claims = {
            "sub": principal.id,
            "exp": int(http.now() + seconds),
            "ttype": "res_sp",
            "res_id": principal.id,
            "res_type": principal.resource_kind,
            "res_tenant": principal.tenancy,
            "res_compartment": principal.compartment,
            "jwk": json.dumps(_jwk(key)),
        }
        return self.sign_token(claims)

    def sign_token(self, claims: Mapping[str, Any]) -> str:
        """A token with these claims, signed by this cloud."""
        signed = f"{_encode({'alg': 'RS256', 'typ': 'JWT'})}.{_encode(claims)}"
        return f"{signed}.{_unpadded(self._issuer.sign(signed.encode(), PKCS1v15(), hashes.SHA256()))}"

    def verify_token(self, token: str) -> dict[str, Any] | None:
        """The claims of a token that this cloud signed; None for any other token."""
        try:
            signed, _, signature = token.rpartition(".")
            self._issuer.public_key().verify(_padded(signature), signed.encode(), PKCS1v15(), hashes.SHA256())
            claims: dict[str, Any] = json.loads(_padded(signed.split(".")[1]))
        except (InvalidSignature, ValueError, IndexError):
            return None
        return claims

    def _verified_token(self, token: str) -> tuple[Credential, float] | None:
        claims = self.verify_token(token)
        if claims is None:
            return None
        try:
            jwk = json.loads(claims["jwk"])
            numbers = RSAPublicNumbers(int.from_bytes(_padded(jwk["e"])), int.from_bytes(_padded(jwk["n"])))
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


def _jwk(key: RSAPublicKey) -> dict[str, str]:
    numbers = key.public_numbers()
    return {
        "kty": "RSA",
        "alg": "RS256",
        "use": "sig",
        "n": _unpadded(numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8)),
        "e": _unpadded(numbers.e.to_bytes(3)),
    }


def _encode(value: Mapping[str, Any]) -> str:
    return _unpadded(json.dumps(value, separators=(",", ":")).encode())


def _unpadded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _padded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
