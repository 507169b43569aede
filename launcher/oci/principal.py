# SPDX-License-Identifier: Apache-2.0
"""Who this run is to OCI: its resource principal, read anew at each use, because OCI renews it meanwhile."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from typing import Any

from launcher.connections import BAD_DIGEST, STALE, Body, Refusal
from launcher.errors import LaunchError
from launcher.oci.rsa import KeyFormError, PrivateKey, read_pem
from launcher.stores import NOT_TAKEN

UNSIGNED = HTTPStatus.UNAUTHORIZED
_TOKEN, _KEY = "OCI_RESOURCE_PRINCIPAL_RPST", "OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM"
_REGION = "OCI_RESOURCE_PRINCIPAL_REGION"
_OVERRIDES = "CLIENT_HOST_OVERRIDES"
_NEEDED = "start the image as an OCI Data Science job run, or on another platform without a bucket"


class Signer:
    """Signs requests as OCI wants them. `offset` is how far the cloud's clock is ahead of this node's."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._read: tuple[str, PrivateKey] | None = None
        self.offset = 0.0

    def headers(self, method: str, target: str, host: str, headers: Mapping[str, str], body: Body) -> dict[str, str]:
        """Headers of a request whose body is none of OCI's business to sign: reads, and uploads of objects."""
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
        """OCI says of a wrong digest by name. 401 may be a clock that is off, or a token that has ended."""
        kind = STALE if status == UNSIGNED else ""
        try:
            error: Any = json.loads(content)
            text = f"{error['code']}: {error['message']}"
        except (ValueError, KeyError, TypeError, RecursionError):
            return Refusal(HTTPStatus(status).phrase, kind) if kind else None
        return Refusal(text, BAD_DIGEST if status == NOT_TAKEN and "MD5" in text else kind)

    def _token(self) -> str:
        return _content(self._environment, _TOKEN).strip()

    def _key(self) -> PrivateKey:
        text = _content(self._environment, _KEY)
        digest = hashlib.sha256(text.encode()).hexdigest()
        if self._read is None or self._read[0] != digest:
            try:
                self._read = (digest, read_pem(text))
            except KeyFormError as error:
                raise LaunchError(f"{_KEY}: {error}") from None
        return self._read[1]


def _content(environment: Mapping[str, str], name: str) -> str:
    """A variable's own text, or that of the file it names."""
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
    """Where the object store is."""
    return _endpoint(environment, "oci_object_storage.ObjectStorageClient", "objectstorage.{region}.oraclecloud.com")


def secrets_endpoint(environment: Mapping[str, str]) -> str:
    """Where secrets are read."""
    return _endpoint(environment, "oci_secrets.SecretsClient", "secrets.vaults.{region}.oci.oraclecloud.com")


def _endpoint(environment: Mapping[str, str], client: str, address: str) -> str:
    """What the environment says, else OCI's own address in the run's region."""
    for entry in environment.get(_OVERRIDES, "").split(";"):
        name, _, url = entry.partition("=")
        if name == client and url:
            return url.rstrip("/")
    region = environment.get(_REGION)
    if not region:
        raise LaunchError(f"{_REGION} is not set, so the addresses of OCI's services are not known: {_NEEDED}")
    return "https://" + address.format(region=region)
