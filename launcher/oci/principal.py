# SPDX-License-Identifier: Apache-2.0
"""Signs requests as the run's resource principal. Reads it again at each use, because OCI renews it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from typing import Any

from launcher.errors import LaunchError
from launcher.object_store import BAD_DIGEST, STALE, Body, Refusal
from launcher.stores import NOT_TAKEN

_SEQUENCE, _INTEGER, _OCTETS = 0x30, 0x02, 0x04
# DER of the DigestInfo that stands before a SHA-256 digest (RFC 8017, 9.2).
_SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")
_FORMS = ("RSA PRIVATE KEY", "PRIVATE KEY")
UNSIGNED = HTTPStatus.UNAUTHORIZED
_TOKEN, _KEY = "OCI_RESOURCE_PRINCIPAL_RPST", "OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM"
_REGION = "OCI_RESOURCE_PRINCIPAL_REGION"
_OVERRIDES = "CLIENT_HOST_OVERRIDES"
_NEEDED = "start the image as an OCI Data Science job run, or on another platform without a bucket"


class KeyFormError(ValueError):
    """The key cannot be read. The text says why, without any part of the key."""


@dataclass(frozen=True, repr=False)
class PrivateKey:
    """An RSA key. The names of its numbers are those of RFC 8017."""

    n: int
    e: int
    p: int
    q: int
    dp: int
    dq: int
    qinv: int

    def sign(self, message: bytes) -> bytes:
        """Signs by the Chinese remainder theorem, which is four times as fast. Verifies the result, because a wrong one
        would reveal the key."""
        size = (self.n.bit_length() + 7) // 8
        tail = b"\x00" + _SHA256 + hashlib.sha256(message).digest()
        block = int.from_bytes(b"\x00\x01" + b"\xff" * (size - 2 - len(tail)) + tail, "big")
        try:
            over_p, over_q = pow(block, self.dp, self.p), pow(block, self.dq, self.q)
            signature = over_q + self.q * (self.qinv * (over_p - over_q) % self.p)
            sound = pow(signature, self.e, self.n) == block
            return signature.to_bytes(size, "big") if sound else _raise_unsound_key()
        except (ValueError, ZeroDivisionError, OverflowError):
            return _raise_unsound_key()


def _raise_unsound_key() -> bytes:
    raise KeyFormError("the private key's numbers do not fit together")


def read_pem(text: str) -> PrivateKey:
    """A key in PEM form, as PKCS#1 or PKCS#8."""
    for form in _FORMS:
        begin, end = f"-----BEGIN {form}-----", f"-----END {form}-----"
        if begin in text and end in text:
            body = text.split(begin, 1)[1].split(end, 1)[0]
            if "ENCRYPTED" in body:
                raise KeyFormError("the private key is encrypted, which only OCI's own SDK can read")
            return _decode_private_key(body, wrapped=form == "PRIVATE KEY")
    raise KeyFormError("the private key is not an RSA key in PEM form")


def _decode_private_key(body: str, wrapped: bool) -> PrivateKey:
    try:
        inside = _Der(base64.b64decode("".join(body.split()), validate=True)).take(_SEQUENCE)
        if wrapped:
            inside.take(_INTEGER)
            inside.take(_SEQUENCE)
            inside = _Der(inside.take(_OCTETS).data).take(_SEQUENCE)
        numbers = [int.from_bytes(inside.take(_INTEGER).data, "big") for _ in range(9)]
    except (IndexError, binascii.Error):
        raise KeyFormError("the private key is cut off or damaged") from None
    return PrivateKey(numbers[1], numbers[2], *numbers[4:9])


class _Der:
    """Reads DER, element by element."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._at = 0

    def take(self, kind: int) -> _Der:
        if self.data[self._at] != kind:
            raise KeyFormError("the private key is not an RSA key")
        length = self.data[self._at + 1]
        self._at += 2
        if length & 0x80:
            octets = length & 0x7F
            length = int.from_bytes(self.data[self._at : self._at + octets], "big")
            self._at += octets
        content = self.data[self._at : self._at + length]
        if len(content) != length:
            raise IndexError
        self._at += length
        return _Der(content)


class Signer:
    """Signs requests as OCI requires. `offset`: how far the cloud's clock is ahead of this node's."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._read: tuple[str, PrivateKey] | None = None
        self.offset = 0.0

    def headers(self, method: str, target: str, host: str, headers: Mapping[str, str], body: Body) -> dict[str, str]:
        """Headers of a request whose body need not be signed: reads, and uploads of objects."""
        date = formatdate(time.time() + self.offset, usegmt=True)
        text = f"date: {date}\n(request-target): {method.lower()} {target}\nhost: {host}"
        signature = base64.b64encode(self._key().sign(text.encode())).decode()
        return {
            "date": date,
            "host": host,
            "authorization": f'Signature version="1",keyId="ST${self._token()}",algorithm="rsa-sha256",'
            f'headers="date (request-target) host",signature="{signature}"',
            **headers,
        }

    def refusal(self, status: int, content: bytes) -> Refusal | None:
        """OCI names a wrong digest in its error. 401 may mean a wrong clock, or an expired token."""
        kind = STALE if status == UNSIGNED else ""
        try:
            error: Any = json.loads(content)
            text = f"{error['code']}: {error['message']}"
        except (ValueError, KeyError, TypeError, RecursionError):
            return Refusal(HTTPStatus(status).phrase, kind) if kind else None
        return Refusal(text, BAD_DIGEST if status == NOT_TAKEN and "MD5" in text else kind)

    def _token(self) -> str:
        return _read_variable_or_file(self._environment, _TOKEN).strip()

    def _key(self) -> PrivateKey:
        text = _read_variable_or_file(self._environment, _KEY)
        digest = hashlib.sha256(text.encode()).hexdigest()
        if self._read is None or self._read[0] != digest:
            try:
                self._read = (digest, read_pem(text))
            except KeyFormError as error:
                raise LaunchError(f"{_KEY}: {error}") from None
        return self._read[1]


def _read_variable_or_file(environment: Mapping[str, str], name: str) -> str:
    """The text of a variable, or of the file that it names."""
    value = environment.get(name)
    if not value:
        raise LaunchError(f"{name} is not set, so this node has no identity in OCI: {_NEEDED}")
    if not os.path.isabs(value):
        return value
    try:
        return Path(value).read_text("utf-8")
    except OSError as error:
        raise LaunchError(f"{name} names {value}, which cannot be read ({error.strerror}): {_NEEDED}") from None


def storage_endpoint(environment: Mapping[str, str]) -> str:
    """The endpoint of the object store."""
    return _oci_endpoint(
        environment, "oci_object_storage.ObjectStorageClient", "objectstorage.{region}.oraclecloud.com"
    )


def secrets_endpoint(environment: Mapping[str, str]) -> str:
    """The endpoint from which secrets are read."""
    return _oci_endpoint(environment, "oci_secrets.SecretsClient", "secrets.vaults.{region}.oci.oraclecloud.com")


def _oci_endpoint(environment: Mapping[str, str], client: str, address: str) -> str:
    """The endpoint in the environment, otherwise OCI's own in the run's region."""
    for entry in environment.get(_OVERRIDES, "").split(";"):
        name, _, url = entry.partition("=")
        if name == client and url:
            return url.rstrip("/")
    region = environment.get(_REGION)
    if not region:
        raise LaunchError(f"{_REGION} is not set, so the addresses of OCI's services are not known: {_NEEDED}")
    return "https://" + address.format(region=region)
