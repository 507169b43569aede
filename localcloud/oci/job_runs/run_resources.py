# SPDX-License-Identifier: Apache-2.0
"""What a run gets from the tenancy: its token, its log, its mounts, its image's command, and its environment.

The token and the key of a run's resource principal are files, which are renewed before the token expires. Oracle's
clients read both again when a call is answered with 401, or when the token is about to expire.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

from catalog import frameworks
from catalog.environments import Need
from localcloud.environments.environment_rows import environment_rows
from localcloud.environments.find import Environment, find_environment_for
from localcloud.files import write_secret
from localcloud.hosts.assignment import CannotStartError, MountedFiles
from localcloud.hosts.node_setup import GIVEN
from localcloud.oci import tenancy
from localcloud.oci.authentication import TOKEN_SECONDS, Caller
from localcloud.oci.log_lines import write_lines
from localcloud.oci.operations import OciCloud
from localcloud.oci.services import artifacts
from localcloud.oci.services.local_operations import RESOURCE_TYPES
from localcloud.oci.services.logs import RUN_OUTPUT
from localcloud.oci.services.object_storage import buckets, listing
from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.server import http

# Readable for the run's user. Nobody else can enter the run's folder.
_MODE = 0o444
log = logging.getLogger("localcloud")
_RECHECK_SECONDS = 1.0
_DEFAULT_MOUNT_PATH = "/mnt"
MayUse = Callable[[StoredResource], bool]


def principal_of(run: StoredResource) -> Caller:
    kind = RESOURCE_TYPES["job-run"]
    return Caller(run.id, run.id, tenancy.TENANCY, resource_kind=kind, compartment=run.compartment)


def token_variables(given: str) -> Mapping[str, str]:
    """The variables with which Oracle's clients find both files in the folder `given`."""
    return {
        "OCI_RESOURCE_PRINCIPAL_VERSION": "2.2",
        "OCI_RESOURCE_PRINCIPAL_RPST": f"{given}/rpst",
        "OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM": f"{given}/rpst-key.pem",
        "OCI_RESOURCE_PRINCIPAL_REGION": tenancy.REGION,
    }


async def write_token(cloud: OciCloud, run: StoredResource, folder: Path) -> float:
    """Writes a new token and returns its lifetime in seconds. The key stays, so token and key always fit together."""
    place = folder / GIVEN
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    place.mkdir(exist_ok=True)
    seconds = cloud.faults.seconds("token", "IssueToken") or TOKEN_SECONDS
    pem = place / "rpst-key.pem"
    if pem.exists():
        key = tenancy.load_private_key(pem)
    else:
        key = await asyncio.to_thread(rsa.generate_private_key, public_exponent=65537, key_size=2048)
        write_secret(pem, tenancy.private_pem(key), _MODE)
    token = cloud.credentials.issue(principal_of(run), key.public_key(), seconds)
    write_secret(place / "rpst", token.encode(), _MODE)
    return seconds


async def keep_token_renewed(cloud: OciCloud, run_id: str, folder: Path, seconds: float) -> None:
    """Replaces each token after half of its lifetime, until cancelled. `seconds` is the lifetime of the first one."""
    while True:
        await asyncio.sleep(seconds / 2)
        run = cloud.store.get(run_id)
        if run is None:
            return
        try:
            seconds = await write_token(cloud, run, folder)
        except OSError:
            log.exception("cannot renew the token of %s", run_id)  # perhaps a full disk; there is time to try again


def remove_token(folder: Path) -> None:
    """Removes the token and key of a run that has ended."""
    for path in (folder / GIVEN).glob("rpst*"):
        path.unlink(missing_ok=True)


class NodeLog:
    """Writes the lines of one node to the run's log."""

    def __init__(self, store: StateStore, run: StoredResource, subject: str, may_write: MayUse) -> None:
        self._store = store
        self._run = run
        self._subject = subject
        self._may_write = may_write
        self._refused_until = 0.0
        self._log = (run.body.get("logDetails") or {}).get("logId", "")

    def write(self, lines: Sequence[bytes]) -> None:
        moment = http.current_moment()
        if not lines or moment < self._refused_until or not (log := self._store.get(self._log)):
            return
        if not self._may_write(log):
            # Each refusal is a line in the server's log, so the policies are asked again only after a while.
            self._refused_until = moment + _RECHECK_SECONDS
            return
        texts = [(moment, str(uuid.uuid4()), line.rstrip(b"\r").decode(errors="replace")) for line in lines]
        with self._store.transaction():
            write_lines(self._store, self._log, self._run.id, self._run.id, self._subject, RUN_OUTPUT, texts)


_DIGEST = re.compile(r"[0-9a-f]{16}")
# The entrypoint of trainyard's own images. An image may be pushed with an entrypoint of its own.
DEFAULT_ENTRYPOINT = ("python", "-I", "-m", "launcher")


def stand_in_name(store: StateStore, address: str, document: str, modules: frozenset[str]) -> str:
    """The name of the local environment in place of an image; empty if the code does not need one.

    The launch `document` of the run and the `modules` that its code imports decide, unless the image was pushed for a
    certain environment.
    """
    image = artifacts.find_image(store, address) if address else None
    if image and (recorded := str(image.body.get("environment") or "")):
        return recorded
    framework, strategy, packages = _environment_need(document)
    if not framework:
        return ""
    need = Need(framework, strategy, modules, team_own=framework not in frameworks.framework_names())
    chosen = find_environment_for(need, packages)
    if isinstance(chosen, Environment):
        return chosen.name
    offered = frozenset().union(*(row.offers for row in environment_rows().values()))
    if packages or modules & offered:
        raise CannotStartError(
            f"The image {address} needs the local environment {chosen.name}: {chosen.reason}. {chosen.remedy}".strip()
        )
    return ""  # the script imports nothing of a framework


def _environment_need(document: str) -> tuple[str, str | None, str]:
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


def image_command(store: StateStore, container: Mapping[str, Any], may_pull: MayUse) -> tuple[str, ...]:
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


def mounted_buckets(
    run: StoredResource, job: StoredResource, store: StateStore, objects: Path, may_mount: MayUse
) -> Iterator[MountedFiles]:
    overridden = run.body.get("jobStorageMountConfigurationOverrideDetailsList")
    for row in overridden or job.body.get("jobStorageMountConfigurationDetailsList") or []:
        if row["storageType"] != "OBJECT_STORAGE":
            raise CannotStartError("The local cloud mounts only buckets: it has no File Storage")
        name = row["bucket"]
        found = store.live(buckets.KIND, name=name) if row["namespace"] == tenancy.NAMESPACE else []
        if not found or not may_mount(found[0]):
            raise CannotStartError(
                f"The bucket {name} cannot be mounted: it does not exist, or the run may not read it"
            )
        prefix = row.get("prefix") or ""
        prefix = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
        items = listing.select_objects(store, found[0], {"prefix": prefix})
        target = PurePosixPath("/", row.get("destinationPath") or _DEFAULT_MOUNT_PATH, row["destinationDirectoryName"])
        yield MountedFiles(str(target), [(item.name[len(prefix) :], objects / item.file) for item in items])
