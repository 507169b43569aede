# SPDX-License-Identifier: Apache-2.0
"""Our own operation that issues the token of a notebook session or job run, so that a person can act as it."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from localcloud.oci import tenancy
from localcloud.oci.errors import not_found
from localcloud.oci.operations import ApiCall, ApiOperation
from localcloud.oci.principals import TOKEN_SECONDS, Caller
from localcloud.server.errors import invalid
from localcloud.server.http import Reply

PATH = "/.trainyard/tokens"
SERVICE = "trainyard"
# The name of each kind in matching rules.
RESOURCE_TYPES = {"job-run": "datasciencejobrun", "notebook-session": "datasciencenotebooksession"}


def _issue(call: ApiCall) -> Reply:
    body = call.json()
    if not isinstance(body, dict) or not all(isinstance(body.get(name), str) for name in ("resource", "publicKey")):
        raise invalid("resource and publicKey are required, both as text")
    resource = call.store.get(body["resource"])
    if resource is None or not resource.live or resource.kind not in RESOURCE_TYPES:
        raise not_found("notebook session or job run")
    try:
        key = serialization.load_pem_public_key(body["publicKey"].encode())
    except ValueError:
        key = None
    if not isinstance(key, RSAPublicKey):
        raise invalid("publicKey must be an RSA public key in PEM form")
    principal = Caller(
        resource.id,
        resource.id,
        tenancy.TENANCY,
        resource_kind=RESOURCE_TYPES[resource.kind],
        compartment=resource.compartment,
    )
    seconds = call.cloud.faults.seconds("token", call.operation.name) or TOKEN_SECONDS
    return Reply(200, {"token": call.cloud.credentials.issue(principal, key, seconds)})


def operations() -> list[ApiOperation]:
    return [ApiOperation("IssueToken", "POST", PATH, _issue, SERVICE)]
