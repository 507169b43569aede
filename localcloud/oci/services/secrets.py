# SPDX-License-Identifier: Apache-2.0
"""Vault: secrets with their versions, and the bundles through which runs read them.

The vaults and keys of secrets are not checked, because they belong to another service, which is not implemented.
"""

from __future__ import annotations

import base64
import binascii

from localcloud.oci import kinds
from localcloud.oci.kinds import ResourceKind
from localcloud.oci.oci_errors import incorrect_state, missing_parameter, not_found
from localcloud.oci.ocids import Lifecycle
from localcloud.oci.operations import ApiCall, ApiOperation
from localcloud.oci.tenancy_store import StoredResource
from localcloud.server import http
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.http import Json, Reply, whole_number

SERVICE = "vault"
BUNDLES = "secrets"
VERSION = "/20180608"
BUNDLES_VERSION = "/20190301"
MAXIMUM_BYTES = 25_600
_DELETION_SECONDS = 30 * 24 * 3600
# The contents of a secret, the newest last. OCI's model lacks this field, so clients never see it.
_CONTENTS = "contents"


def _complete_secret(call: ApiCall, body: Json) -> Json:
    content = call.details().get("secretContent")
    if content is None:
        raise missing_parameter("secretContent")
    return {**body, "currentVersionNumber": 1, _CONTENTS: [_secret_content(content)]}


def _updated_secret(call: ApiCall, secret: StoredResource, body: Json) -> Json:
    content = call.details().get("secretContent")
    if content is None:
        return {**body, "currentVersionNumber": secret.body["currentVersionNumber"]}
    contents = [*secret.body[_CONTENTS], _secret_content(content)]
    return {**body, "currentVersionNumber": len(contents), _CONTENTS: contents}


def _secret_content(details: Json) -> Json:
    text = details.get("content", "")
    try:
        size = len(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise invalid_parameter("secretContent.content must be base64") from None
    if size > MAXIMUM_BYTES:
        raise invalid_parameter(f"a secret has at most {MAXIMUM_BYTES} bytes")
    return {"content": text, "name": details.get("name"), "timeCreated": http.format_rfc3339(http.current_moment())}


SECRET = ResourceKind(
    "secret", "Secret", SERVICE, f"{VERSION}/secrets", "secretId",
    Lifecycle("CREATING", "ACTIVE", "DELETING", "DELETED"), ocid="vaultsecret", name_field="secretName",
    parent_field="vaultId", unique_in="parent", summary="SecretSummary", on_create=_complete_secret,
    on_update=_updated_secret, verbs=("Create", "Get", "List", "Update", "Move"),
    unserved=dict.fromkeys(("enableAutoGeneration", "secretGenerationContext"), "it generates no secrets"),
)  # fmt: skip


def schedule_secret_deletion(call: ApiCall) -> Reply:
    secret = _in_state(call, "ACTIVE")
    moment = call.details().get("timeOfDeletion") or http.format_rfc3339(http.current_moment() + _DELETION_SECONDS)
    return _change_secret_state(call, secret, "PENDING_DELETION", {"timeOfDeletion": moment})


def cancel_secret_deletion(call: ApiCall) -> Reply:
    secret = _in_state(call, "PENDING_DELETION")
    return _change_secret_state(call, secret, "ACTIVE", {"timeOfDeletion": None})


def _in_state(call: ApiCall, state: str) -> StoredResource:
    secret = kinds.find_living(SECRET, call)
    secret.require_etag(call.if_match)
    if secret.state != state:
        raise incorrect_state(f"The secret {secret.id} is {secret.state}")
    return secret


def _change_secret_state(call: ApiCall, secret: StoredResource, state: str, more: Json) -> Reply:
    return Reply(200, headers={"etag": call.store.put(secret, state=state, body={**secret.body, **more}).etag})


def get_secret_bundle(call: ApiCall) -> Reply:
    secret = call.store.get(call.params["secretId"])
    if secret is None or secret.kind != SECRET.name or not secret.live:
        raise not_found("secret")
    return _bundle_reply(call, secret)


def get_secret_bundle_by_name(call: ApiCall) -> Reply:
    matching = call.store.live(SECRET.name, name=call.needed("secretName"), parent=call.needed("vaultId"))
    if not matching:
        raise not_found("secret")
    return _bundle_reply(call, matching[0])


def _bundle_reply(call: ApiCall, secret: StoredResource) -> Reply:
    contents = secret.body[_CONTENTS]
    text = call.query.get("versionNumber")
    if not text:
        stage, newest = call.query.get("stage", "CURRENT"), len(contents)
        numbers = {"CURRENT": newest, "LATEST": newest, "PREVIOUS": newest - 1}
        if stage not in numbers:
            raise invalid_parameter(f"stage must be one of {', '.join(numbers)} here, not {stage!r}")
        text = str(numbers[stage])
    number = whole_number(text) or 0
    if not 1 <= number <= len(contents):
        raise not_found(f"version {text[:80]} of the secret")
    content = contents[number - 1]
    body = {
        "secretId": secret.id,
        "timeCreated": content["timeCreated"],
        "versionNumber": number,
        "versionName": content["name"],
        "secretBundleContent": {"contentType": "BASE64", "content": content["content"]},
        "stages": ["CURRENT", "LATEST"] if number == len(contents) else ["PREVIOUS"],
        "metadata": secret.body.get("metadata", {}),
    }
    return Reply(200, body, {"etag": secret.etag})


def secret_operations() -> list[ApiOperation]:
    one = f"{VERSION}/secrets/{{secretId}}/actions"
    bundles = f"{BUNDLES_VERSION}/secretbundles"
    deletion = "ScheduleSecretDeletionDetails"
    return [
        *kinds.kind_operations(SECRET),
        ApiOperation(
            "ScheduleSecretDeletion", "POST", f"{one}/scheduleDeletion", schedule_secret_deletion, SERVICE, deletion
        ),
        ApiOperation("CancelSecretDeletion", "POST", f"{one}/cancelDeletion", cancel_secret_deletion, SERVICE),
        ApiOperation("GetSecretBundle", "GET", f"{bundles}/{{secretId}}", get_secret_bundle, BUNDLES),
        ApiOperation(
            "GetSecretBundleByName", "POST", f"{bundles}/actions/getByName", get_secret_bundle_by_name, BUNDLES
        ),
    ]
