# SPDX-License-Identifier: Apache-2.0
"""Memberships of users in groups, the API keys with which users sign requests, and their auth tokens for the
registry."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from localcloud.oci import kinds, models, tenancy
from localcloud.oci.authentication import Caller, Credential, key_fingerprint
from localcloud.oci.oci_errors import already_exists, not_found
from localcloud.oci.ocids import new_ocid
from localcloud.oci.operations import ApiCall, ApiOperation
from localcloud.oci.paging import page_of
from localcloud.oci.tenancy import MEMBERSHIP, add_membership
from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.server import http
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.http import Json, Reply

SERVICE = "identity"
VERSION = "/20160918"
API_KEY = "api-key"
MAXIMUM_KEYS = 3
AUTH_TOKEN = "auth-token"
MAXIMUM_AUTH_TOKENS = 2


def find_api_key(store: StateStore, key_id: str) -> Credential | None:
    """The credential of an uploaded key, by its key id `tenancy/user/fingerprint`."""
    row = store.get(key_id)
    if row is None or row.kind != API_KEY or not row.live:
        return None
    user = store.get(row.parent)
    if user is None or not user.live:
        return None
    return Credential(Caller(user.id, user.name, tenancy.TENANCY), _public_key(row.body["keyValue"]))


def add_user_to_group(call: ApiCall) -> Reply:
    details = call.details()
    kinds.require_references(call, {"userId": "user", "groupId": "group"}, details)
    user, group = details["userId"], details["groupId"]
    if call.store.live(MEMBERSHIP, name=user, parent=group):
        raise already_exists("This membership")
    return _membership_reply(add_membership(call.store, user, group))


def get_user_group_membership(call: ApiCall) -> Reply:
    return _membership_reply(_require_membership(call))


def remove_user_from_group(call: ApiCall) -> Reply:
    membership = _require_membership(call)
    membership.require_etag(call.if_match)
    call.store.put(membership, state="DELETED", live=False)
    return Reply(204)


def list_user_group_memberships(call: ApiCall) -> Reply:
    call.needed("compartmentId")
    page = page_of(call.store, MEMBERSHIP, call.query, {"userId": "name", "groupId": "parent"}, live_only=True)
    return Reply(200, [_membership_body(row) for row in page.items], page.headers)


def _require_membership(call: ApiCall) -> StoredResource:
    membership = call.store.get(call.params["userGroupMembershipId"])
    if membership is None or membership.kind != MEMBERSHIP or not membership.live:
        raise not_found("membership")
    return membership


def _membership_body(row: StoredResource) -> Json:
    return models.shape_reply(SERVICE, "UserGroupMembership", {**row.body, "lifecycleState": row.state})


def _membership_reply(row: StoredResource) -> Reply:
    return Reply(200, _membership_body(row), {"etag": row.etag})


def upload_api_key(call: ApiCall) -> Reply:
    user, text = _require_user(call), call.details()["key"]
    key = _public_key(text)
    identifier = f"{tenancy.TENANCY}/{user.id}/{key_fingerprint(key)}"
    keys = call.store.live(API_KEY, parent=user.id)
    if any(row.id == identifier for row in keys):
        raise already_exists("This key")
    if len(keys) >= MAXIMUM_KEYS:
        raise invalid_parameter(f"a user has at most {MAXIMUM_KEYS} keys")
    body: Json = {
        "keyId": identifier,
        "keyValue": text,
        "fingerprint": key_fingerprint(key),
        "userId": user.id,
        "timeCreated": http.format_rfc3339(http.current_moment()),
        "lifecycleState": "ACTIVE",
    }
    call.store.connection.execute("DELETE FROM resources WHERE id = ?", (identifier,))  # the same key, deleted earlier
    made = call.store.add(
        StoredResource(identifier, API_KEY, tenancy.TENANCY, body["fingerprint"], "ACTIVE", body, parent=user.id)
    )
    return Reply(200, body, {"etag": made.etag})


def list_api_keys(call: ApiCall) -> Reply:
    return Reply(200, [dict(row.body) for row in call.store.live(API_KEY, parent=_require_user(call).id)])


def delete_api_key(call: ApiCall) -> Reply:
    keys = call.store.live(API_KEY, parent=_require_user(call).id, name=call.params["fingerprint"])
    if not keys:
        raise not_found("API key")
    call.store.put(keys[0], live=False)
    return Reply(204)


def create_auth_token(call: ApiCall) -> Reply:
    """The only reply with the token itself: its digest is kept."""
    user, token = _require_user(call), secrets.token_urlsafe(15)
    if len(call.store.live(AUTH_TOKEN, parent=user.id)) >= MAXIMUM_AUTH_TOKENS:
        raise invalid_parameter(f"a user has at most {MAXIMUM_AUTH_TOKENS} auth tokens")
    identifier = new_ocid("credential", "")
    body: Json = {
        "id": identifier,
        "userId": user.id,
        "description": call.details()["description"],
        "timeCreated": http.format_rfc3339(http.current_moment()),
        "lifecycleState": "ACTIVE",
    }
    kept = {**body, "digest": _token_digest(token)}
    made = call.store.add(
        StoredResource(identifier, AUTH_TOKEN, tenancy.TENANCY, identifier, "ACTIVE", kept, parent=user.id)
    )
    return Reply(200, {**body, "token": token}, {"etag": made.etag})


def list_auth_tokens(call: ApiCall) -> Reply:
    tokens = call.store.live(AUTH_TOKEN, parent=_require_user(call).id)
    return Reply(200, [models.shape_reply(SERVICE, "AuthToken", row.body) for row in tokens])


def delete_auth_token(call: ApiCall) -> Reply:
    tokens = call.store.live(AUTH_TOKEN, parent=_require_user(call).id, name=call.params["authTokenId"])
    if not tokens:
        raise not_found("auth token")
    call.store.put(tokens[0], live=False)
    return Reply(204)


def find_token_holder(store: StateStore, name: str, token: str) -> Caller | None:
    """The user with this name, if it has this auth token."""
    for user in store.live("user", name=name):
        digests = [row.body["digest"] for row in store.live(AUTH_TOKEN, parent=user.id)]
        if any(hmac.compare_digest(digest, _token_digest(token)) for digest in digests):
            return Caller(user.id, user.name, tenancy.TENANCY)
    return None


def _token_digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _require_user(call: ApiCall) -> StoredResource:
    user = call.store.get(call.params["userId"])
    if user is None or user.kind != "user" or not user.live:
        raise not_found("user")
    return user


def _public_key(text: str) -> RSAPublicKey:
    try:
        key = serialization.load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPublicKey) or key.key_size < 2048:
        raise invalid_parameter("key must be an RSA public key in PEM form, of at least 2048 bits")
    return key


def user_operations() -> list[ApiOperation]:
    memberships, keys = f"{VERSION}/userGroupMemberships", f"{VERSION}/users/{{userId}}/apiKeys"
    tokens = f"{VERSION}/users/{{userId}}/authTokens"
    one = f"{memberships}/{{userGroupMembershipId}}"
    rows = (
        ("AddUserToGroup", "POST", memberships, add_user_to_group, "AddUserToGroupDetails"),
        ("GetUserGroupMembership", "GET", one, get_user_group_membership, ""),
        ("ListUserGroupMemberships", "GET", memberships, list_user_group_memberships, ""),
        ("RemoveUserFromGroup", "DELETE", one, remove_user_from_group, ""),
        ("UploadApiKey", "POST", keys, upload_api_key, "CreateApiKeyDetails"),
        ("ListApiKeys", "GET", keys, list_api_keys, ""),
        ("DeleteApiKey", "DELETE", f"{keys}/{{fingerprint}}", delete_api_key, ""),
        ("CreateAuthToken", "POST", tokens, create_auth_token, "CreateAuthTokenDetails"),
        ("ListAuthTokens", "GET", tokens, list_auth_tokens, ""),
        ("DeleteAuthToken", "DELETE", f"{tokens}/{{authTokenId}}", delete_auth_token, ""),
    )
    return [
        ApiOperation(name, method, path, handler, SERVICE, details) for name, method, path, handler, details in rows
    ]
