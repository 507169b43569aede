# SPDX-License-Identifier: Apache-2.0
"""Tokens of container tools: a signed request gets a token, and the token is the tool's password at the registry. So is
a user's auth token, with the name `NAMESPACE/USER`."""

from __future__ import annotations

import base64
from typing import Any

from localcloud.oci import tenancy
from localcloud.oci.authentication import Caller, verify_signature
from localcloud.oci.operations import OciCloud
from localcloud.oci.services.users import find_token_holder
from localcloud.server import http
from localcloud.server.api_errors import ApiError
from localcloud.server.http import Reply, Request

# The path and the user name of OCIR.
PATH = "/20180419/docker/token"
USER = "BEARER_TOKEN"
SECONDS = 3600
_KIND = "registry"


def answer_token_request(cloud: OciCloud, request: Request) -> tuple[Reply, Caller | None]:
    """A token for the signer of the request, or for the user of an auth token. The bearer of a token gets another one
    with the same expiry."""
    if caller := _signed_caller(cloud, request) or _auth_token_user(cloud, request):
        return _token_reply(cloud, caller, int(http.current_moment()) + SECONDS), caller
    principal = bearer_principal(cloud, request)
    claims = _token_claims(cloud, request)
    return (_token_reply(cloud, principal, claims["exp"]) if principal and claims else Reply(401)), principal


def bearer_principal(cloud: OciCloud, request: Request) -> Caller | None:
    """The principal behind a request with a token; None if it was deleted since."""
    claims = _token_claims(cloud, request)
    if claims is None:
        return _auth_token_user(cloud, request)
    holder = Caller(claims["sub"], claims["name"], tenancy.TENANCY, claims["res_type"], claims["res_compartment"])
    return cloud.credentials.current(holder)


def _token_claims(cloud: OciCloud, request: Request) -> dict[str, Any] | None:
    """The claims of a request's valid token. The token may also come as the password of BEARER_TOKEN."""
    user, password = _basic_login(request)
    text = password if user == USER else "" if user else request.headers.get("authorization", "").partition(" ")[2]
    claims = cloud.credentials.verify_token(text) if text else None
    return claims if claims and claims.get("ttype") == _KIND and claims["exp"] > http.current_moment() else None


def _basic_login(request: Request) -> tuple[str, str]:
    """The user and the password of a request; both empty if it has none."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    try:
        user, _, password = (
            base64.b64decode(text if kind.lower() == "basic" else "", validate=True).decode().partition(":")
        )
    except ValueError:
        return "", ""
    return user, password


def _auth_token_user(cloud: OciCloud, request: Request) -> Caller | None:
    user, password = _basic_login(request)
    namespace, _, name = user.partition("/")
    return find_token_holder(cloud.store, name, password) if namespace == tenancy.NAMESPACE else None


def _signed_caller(cloud: OciCloud, request: Request) -> Caller | None:
    if not request.headers.get("authorization", "").startswith("Signature"):
        return None

    def key(key_id: str) -> Any:
        credential = cloud.credentials.find(key_id)
        return credential.key if credential else None

    try:
        key_id = verify_signature(request.method, request.target, request.headers, key)
    except ApiError:
        return None
    credential = cloud.credentials.find(key_id)
    return credential.principal if credential else None


def _token_reply(cloud: OciCloud, principal: Caller, end: int) -> Reply:
    claims = {
        "ttype": _KIND,
        "sub": principal.id,
        "name": principal.name,
        "res_type": principal.resource_kind,
        "res_compartment": principal.compartment,
        "exp": end,
    }
    token = cloud.credentials.sign_token(claims)
    return Reply(200, {"token": token, "access_token": token, "expires_in": int(end - http.current_moment())})
