# SPDX-License-Identifier: Apache-2.0
"""Whether a run's image is where its name says, asked before the run is made."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from provider.base.errors import ProviderError
from provider.base.resource import Call
from provider.oci import sdk
from provider.oci.calls import attempt
from provider.oci.session import Session

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


def parse(address: str) -> RegistryImage | None:
    """None when the address is not one of OCI's registries, where nothing can be looked up."""
    found = _OCIR.match(address)
    if found is None:
        return None
    region = found["region"] or found["key"]
    return RegistryImage(
        address, found["host"], region, found["namespace"], found["repository"], found["tag"], found["digest"]
    )


def must_exist(session: Session, call: Call, address: str, compartment: str, access_minutes: float) -> None:
    image = parse(address)
    if image is None:
        return
    call.report.status(f"looking for the image {address}")
    if _exists(session, call, image, compartment, access_minutes):
        return
    if image.namespace != _namespace(session, call):
        call.report.warning(f"{address} lies in another tenancy's registry; whether it exists was not checked.")
        return
    tagged = address if image.tag or image.digest else f"{address}:latest"
    raise ProviderError(
        f"The image {address} is not in the registry (or may not be seen); no run was made.",
        f"Push it, then run the same command again:\n  docker login {image.host}\n  docker push {tagged}",
    )


def _exists(session: Session, call: Call, image: RegistryImage, compartment: str, access_minutes: float) -> bool:
    """In the run's own compartment first, then in the whole tenancy, where a shared repository may be."""
    wanted: dict[str, Any] = {"repository_name": image.repository, "limit": 1}
    if image.digest:
        wanted["image_digest"] = image.digest
    else:
        wanted["version"] = image.tag or "latest"
    client = session.client("artifacts", _other_region(session, image))
    places: list[tuple[str, dict[str, bool]]] = [(compartment, {})]
    places.append((session.tenancy, {"compartment_id_in_subtree": True}))
    for place, depth in places:
        found = attempt(
            call,
            f"Look for the image {image.address}",
            partial(client.list_container_images, place, **wanted, **depth),
            access_minutes,
        )
        if any(item.lifecycle_state == "AVAILABLE" for item in found.data.items):
            return True
    return False


def _other_region(session: Session, image: RegistryImage) -> str | None:
    """The image's region as the SDK wants it, or None when it is the session's own or its key is not known."""
    regions = sdk.module("regions")
    region = regions.get_region_from_short_name(image.region) if "-" not in image.region else image.region
    return None if region in (session.credentials["region"], image.region.split("-")[0]) else str(region)


def _namespace(session: Session, call: Call) -> str:
    client = session.client("object_storage")
    return str(attempt(call, "Read the tenancy's namespace", client.get_namespace).data)
