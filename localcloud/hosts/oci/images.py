# SPDX-License-Identifier: Apache-2.0
"""What a container image of the registry starts, and which local environment stands in for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from localcloud.api.services import artifacts
from localcloud.api.store import StateStore, StoredResource
from localcloud.hosts.assignment import CannotStartError

MayPull = Callable[[StoredResource], bool]
# The entrypoint of trainyard's own images. An image may be pushed with an entrypoint of its own.
DEFAULT_ENTRYPOINT = ("python", "-m", "launcher")


def stand_in_name(store: StateStore, address: str) -> str:
    """The name of the local environment that was recorded with the image. Empty if there is none."""
    image = artifacts.find_image(store, address) if address else None
    return str(image.body.get("environment", "")) if image else ""


def command(store: StateStore, container: Mapping[str, Any], may_pull: MayPull) -> tuple[str, ...]:
    """The command that the image starts. Empty without an image."""
    address = str(container.get("image", ""))
    if not address:
        return ()
    image = artifacts.find_image(store, address)
    if image is None or not may_pull(image):
        raise CannotStartError(
            f"The image {address} cannot be pulled: it does not exist in the registry, or the run may not read it"
        )
    digest = container.get("imageDigest")
    if digest and digest != image.body["digest"]:
        raise CannotStartError(f"The image {address} has the digest {image.body['digest']}, not {digest}")
    entrypoint, cmd = container.get("entrypoint") or [], container.get("cmd") or []
    if not entrypoint:
        entrypoint = image.body["entrypoint"] or ([] if cmd else DEFAULT_ENTRYPOINT)
        cmd = cmd or image.body["cmd"]
    return (*entrypoint, *cmd)
