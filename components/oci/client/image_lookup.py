# SPDX-License-Identifier: Apache-2.0
"""Checks that a run's image is in its registry, before the run is made."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from components.oci.client import sdk
from components.oci.client.calls import attempt
from components.oci.client.session import Session
from components.platform.calls import Call
from components.platform.errors import ProviderError

_OCIR = re.compile(
    r"^(?P<host>(?:ocir\.(?P<region>[a-z0-9-]+)\.oci\.[a-z0-9.]+)|(?:(?P<key>[a-z0-9-]+)\.ocir\.io))"
    r"/(?P<namespace>[^/]+)/(?P<repository>[^:@]+)(?::(?P<tag>[^@]+))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?$"
)


@dataclass(frozen=True)
class RegistryImage:
    address: str
    host: str
    region: str
    namespace: str
    repository: str
    tag: str | None
    digest: str | None


def parse_address(address: str) -> RegistryImage | None:
    """None if the address is not in one of OCI's registries: we cannot look there."""
    match = _OCIR.match(address)
    if match is None:
        return None
    region = match["region"] or match["key"]
    return RegistryImage(
        address, match["host"], region, match["namespace"], match["repository"], match["tag"], match["digest"]
    )


def require_image(session: Session, call: Call, address: str, compartment: str, access_minutes: float) -> None:
    image = parse_address(address)
    if image is None:
        return
    call.report.status(f"looking for the image {address}")
    if _exists(session, call, image, compartment, access_minutes):
        return
    if image.namespace != _namespace(session, call):
        call.report.warning(f"{address} is in another tenancy's registry: nobody checked that it exists.")
        return
    tagged = address if image.tag or image.digest else f"{address}:latest"
    raise ProviderError(
        f"The image {address} is not in the registry, or you may not see it. No run was made.",
        f"Push it, then run the same command again:\n  docker login {image.host}\n  docker push {tagged}",
    )


def _exists(session: Session, call: Call, image: RegistryImage, compartment: str, access_minutes: float) -> bool:
    """Looks in the run's compartment first, then in the whole tenancy: repositories may be shared."""
    wanted: dict[str, Any] = {"repository_name": image.repository, "limit": 1}
    if image.digest:
        wanted["image_digest"] = image.digest
    else:
        wanted["version"] = image.tag or "latest"
    client = session.client("artifacts", _other_region(session, image))
    places: list[tuple[str, dict[str, bool]]] = [(compartment, {})]
    places.append((session.tenancy, {"compartment_id_in_subtree": True}))
    for place, depth in places:
        listing = attempt(
            call,
            f"Look for the image {image.address}",
            partial(client.list_container_images, place, **wanted, **depth),
            access_minutes,
        )
        if any(item.lifecycle_state == "AVAILABLE" for item in listing.data.items):
            return True
    return False


def _other_region(session: Session, image: RegistryImage) -> str | None:
    """The image's region in the SDK's words. None if it is the session's own region, or its key is unknown."""
    regions = sdk.module("regions")
    region = regions.get_region_from_short_name(image.region) if "-" not in image.region else image.region
    return None if region in (session.credentials["region"], image.region.split("-")[0]) else str(region)


def _namespace(session: Session, call: Call) -> str:
    client = session.client("object_storage")
    return str(attempt(call, "Read the tenancy's namespace", client.get_namespace).data)
