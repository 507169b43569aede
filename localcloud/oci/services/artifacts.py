# SPDX-License-Identifier: Apache-2.0
"""Artifacts: container repositories, and the images that were pushed to them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from localcloud.oci import kinds, ocids, tenancy
from localcloud.oci.container_images import is_repository, parse_image_address
from localcloud.oci.kinds import ResourceKind
from localcloud.oci.oci_errors import incorrect_state, not_found
from localcloud.oci.ocids import new_ocid
from localcloud.oci.operations import ApiCall, ApiOperation
from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.server import http
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.http import Json, Reply

SERVICE = "artifacts"
VERSION = "/20160918/container"
REGISTRY = f"{tenancy.REGION_KEY}.ocir.io"
PUSH_PATH = "/.trainyard/images"
WAITING_IMAGE = "image-standing-by"


def _complete_repository(call: ApiCall, body: Json) -> Json:
    if not is_repository(body["displayName"]):
        raise invalid_parameter(
            f"displayName {body['displayName']!r} must be lower-case letters, digits and separators"
        )
    return body


def _delete_images(call: ApiCall, repository: StoredResource) -> None:
    for image in call.store.live(IMAGE.name, parent=repository.id):
        kinds.remove_resource(IMAGE, call, image)
    call.store.connection.execute("DELETE FROM blobs WHERE repository = ?", (repository.name,))


REPOSITORY = ResourceKind(
    "container-repository", "ContainerRepository", SERVICE, f"{VERSION}/repositories", "repositoryId",
    ocids.REGISTRY, ocid="containerrepo", plural="ContainerRepositories", summary="ContainerRepositorySummary",
    collection="ContainerRepositoryCollection", unique_in="tenancy",
    on_create=_complete_repository, on_delete=_delete_images, brings=("container-image",),
    after_create=lambda call, repository: _push_waiting_images(call, repository),
    defaults={
        "isImmutable": False, "isPublic": False, "imageCount": 0, "layerCount": 0, "layersSizeInBytes": 0,
        "billableSizeInGBs": 0, "namespace": tenancy.NAMESPACE,
    },
)  # fmt: skip
IMAGE = ResourceKind(
    "container-image", "ContainerImage", SERVICE, f"{VERSION}/images", "imageId", ocids.REGISTRY,
    ocid="containerimage", parent_field="repositoryId", summary="ContainerImageSummary",
    collection="ContainerImageCollection", verbs=("Get", "List", "Delete"),
)  # fmt: skip


def find_image(store: StateStore, address: str) -> StoredResource | None:
    """The pushed image that an address names; None for an address outside this tenancy's registry."""
    parts = parse_image_address(address)
    if parts is None or parts.registry not in (
        REGISTRY,
        f"{tenancy.REGION}.ocir.io",
        f"ocir.{tenancy.REGION}.oci.oraclecloud.com",
    ):
        return None
    for image in store.live(IMAGE.name) if parts.namespace == tenancy.NAMESPACE else []:
        body = image.body
        wanted = parts.digest == body["digest"] if parts.digest else (parts.tag or "latest") == body["version"]
        if body["repositoryName"] == parts.repository and wanted:
            return image
    return None


def push_container_image(call: ApiCall) -> Reply:
    """Records an image as `docker push` does. A missing repository is created in the root compartment.

    With `standBy`, a push into a missing repository is stored, and carried out when the repository is created.
    """
    details = call.json()
    if not isinstance(details, dict) or "image" not in details:
        raise invalid_parameter("image is required: the address of the image")
    for name, value in details.items():
        if name not in _PUSH_FIELDS or not _PUSH_FIELDS[name](value):
            raise invalid_parameter(f"{name[:80]} is not a field of an image push, or has the wrong type")
    parts = parse_image_address(details["image"])
    own = parts is not None and (parts.registry, parts.namespace) == (REGISTRY, tenancy.NAMESPACE)
    if parts is None or not own or not is_repository(parts.repository):
        raise invalid_parameter(f"image must be an address such as {REGISTRY}/{tenancy.NAMESPACE}/team/name:tag")
    name, version = parts.repository, parts.tag or "latest"
    repositories = call.store.live(REPOSITORY.name, name=name)
    if not repositories and details.get("standBy"):
        for old in call.store.live(WAITING_IMAGE, name=name):
            if old.body["image"] == details["image"]:
                call.store.put(old, body=details)
                return Reply(202, {})
        call.store.add(
            StoredResource(new_ocid(IMAGE.ocid, tenancy.REGION_KEY), WAITING_IMAGE, tenancy.TENANCY, name, "", details)
        )
        return Reply(202, {})
    repository = repositories[0] if repositories else _first_push(call, name)
    # A stand-in replaces no image that was pushed with content, and none in an immutable repository.
    existing = call.store.live(IMAGE.name, name=f"{name}:{version}") if details.get("standBy") else []
    for pushed in existing:
        if not pushed.body["layers"] and not repository.body["isImmutable"]:
            continue
        call.store.put(pushed, body={**pushed.body, "environment": details.get("environment") or ""})
        return Reply(200, kinds.render_of_kind(IMAGE, pushed), {"etag": pushed.etag})
    image = _put_image(call, repository, version, parts.digest, details)
    return Reply(200, kinds.render_of_kind(IMAGE, image), {"etag": image.etag})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_layers(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, dict) and item.keys() == {"digest", "sizeInBytes"}
        and _is_text(item["digest"]) and _is_size(item["sizeInBytes"])
        for item in value
    )  # fmt: skip


# The fields of our own operation. Oracle has no model for them.
_PUSH_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "image": _is_text,
    "entrypoint": _are_texts,
    "cmd": _are_texts,
    "layers": _are_layers,
    "manifestSizeInBytes": _is_size,
    "environment": _is_text,
    "standBy": lambda value: isinstance(value, bool),
}


def _put_image(call: ApiCall, repository: StoredResource, version: str, digest: str, details: Json) -> StoredResource:
    """Adds the image to its repository, and removes an older one with the same tag."""
    name = repository.name
    digest = digest or f"sha256:{hashlib.sha256(f'{name}:{version}'.encode()).hexdigest()}"
    if repository.body["isImmutable"] and call.store.live(IMAGE.name, name=f"{name}:{version}"):
        raise incorrect_state(f"the repository {name} is immutable and has {version} already")
    for old in call.store.live(IMAGE.name, name=f"{name}:{version}"):
        kinds.remove_resource(IMAGE, call, old)
    moment = http.format_rfc3339(http.current_moment())
    layers = details.get("layers") or []
    body: Json = {
        "id": new_ocid(IMAGE.ocid, tenancy.REGION_KEY),
        "compartmentId": repository.compartment,
        "createdBy": call.principal.id,
        "digest": digest,
        "displayName": f"{repository.name}:{version}",
        "layers": layers,
        "layersSizeInBytes": sum(layer["sizeInBytes"] for layer in layers),
        "manifestSizeInBytes": details.get("manifestSizeInBytes") or 0,
        "pullCount": 0,
        "repositoryId": repository.id,
        "repositoryName": repository.name,
        "timeCreated": moment,
        "version": version,
        "versions": [{"createdBy": call.principal.id, "timeCreated": moment, "version": version}],
        "freeformTags": {},
        "definedTags": {},
        # The default command, and the local environment. OCI's model lacks these fields, so clients never see them.
        "entrypoint": details.get("entrypoint") or [],
        "cmd": details.get("cmd") or [],
        "environment": details.get("environment") or "",
    }
    image = call.store.add(
        StoredResource(
            body["id"], IMAGE.name, repository.compartment, body["displayName"], "AVAILABLE", body, parent=repository.id
        )
    )
    count = len(call.store.live(IMAGE.name, parent=repository.id))
    call.store.put(repository, body={**repository.body, "imageCount": count, "timeLastPushed": moment})
    return image


def _push_waiting_images(call: ApiCall, repository: StoredResource) -> None:
    for waiting in call.store.live(WAITING_IMAGE, name=repository.name):
        parts = parse_image_address(waiting.body["image"])
        if parts is not None:
            _put_image(call, repository, parts.tag or "latest", parts.digest, dict(waiting.body))


def _first_push(call: ApiCall, name: str) -> StoredResource:
    body: Json = {
        **REPOSITORY.defaults,
        "id": new_ocid(REPOSITORY.ocid, tenancy.REGION_KEY),
        "compartmentId": tenancy.TENANCY,
        "createdBy": call.principal.id,
        "displayName": name,
        "timeCreated": http.format_rfc3339(http.current_moment()),
        "freeformTags": {},
        "definedTags": {},
    }
    return call.store.add(StoredResource(body["id"], REPOSITORY.name, tenancy.TENANCY, name, "AVAILABLE", body))


def get_container_configuration(call: ApiCall) -> Reply:
    if call.needed("compartmentId") != tenancy.TENANCY:
        raise not_found("the container configuration belongs to the tenancy")
    return Reply(200, {"isRepositoryCreatedOnFirstPush": True, "namespace": tenancy.NAMESPACE})


PUSH = ApiOperation("PushContainerImage", "POST", PUSH_PATH, push_container_image, SERVICE)


def artifact_operations() -> list[ApiOperation]:
    return [
        *kinds.kind_operations(REPOSITORY),
        *kinds.kind_operations(IMAGE),
        ApiOperation(
            "GetContainerConfiguration", "GET", f"{VERSION}/configuration", get_container_configuration, SERVICE
        ),
        PUSH,
    ]
