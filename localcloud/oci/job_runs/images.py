# SPDX-License-Identifier: Apache-2.0
"""The command of a container image in the registry, and the local environment in place of the image."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from catalog import frameworks
from catalog.environments import Need
from localcloud.environments.find import Environment, find_for
from localcloud.environments.rows import rows
from localcloud.hosts.assignment import CannotStartError
from localcloud.oci.services import artifacts
from localcloud.oci.store import StateStore, StoredResource

MayPull = Callable[[StoredResource], bool]
# The entrypoint of trainyard's own images. An image may be pushed with an entrypoint of its own.
_DIGEST = re.compile(r"[0-9a-f]{16}")
DEFAULT_ENTRYPOINT = ("python", "-I", "-m", "launcher")


def stand_in_name(store: StateStore, address: str, document: str, modules: frozenset[str]) -> str:
    """The name of the local environment in place of an image; empty if the code does not need one.

    The run's launch `document` and the `modules` that its code imports decide. An image may also be pushed as the
    stand-in for a certain environment.
    """
    image = artifacts.find_image(store, address) if address else None
    if image and (recorded := str(image.body.get("environment") or "")):
        return recorded
    framework, strategy, packages = _wanted(document)
    if not framework:
        return ""
    need = Need(framework, strategy, modules, team_own=framework not in frameworks.names())
    chosen = find_for(need, packages)
    if isinstance(chosen, Environment):
        return chosen.name
    offered = frozenset().union(*(row.offers for row in rows().values()))
    if packages or modules & offered:
        raise CannotStartError(
            f"The image {address} needs the local environment {chosen.name}: {chosen.reason}. {chosen.remedy}".strip()
        )
    return ""  # the script imports nothing of a framework


def _wanted(document: str) -> tuple[str, str | None, str]:
    """Framework, strategy and packages of a launch document. It comes from the run's job, so it may be invalid."""
    try:
        launch = json.loads(document) if document else {}
    except (ValueError, RecursionError):
        return "", None, ""
    if not isinstance(launch, dict):
        return "", None, ""
    framework, strategy, packages = (launch.get(key) for key in ("framework", "strategy", "packages"))
    digest = packages if isinstance(packages, str) and _DIGEST.fullmatch(packages) else ""
    return framework if isinstance(framework, str) else "", strategy if isinstance(strategy, str) else None, digest


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
