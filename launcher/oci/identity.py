# SPDX-License-Identifier: Apache-2.0
"""A node of an OCI Data Science job run."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.board import SUCCEEDED, Event, seconds
from launcher.connections import Connection
from launcher.document import Launch
from launcher.errors import LaunchError, MissingError
from launcher.identities import GitRepository, Identity
from launcher.oci.principal import Signer, secrets_endpoint
from launcher.readiness import patience
from launcher.say import Voice
from launcher.settings import flag
from launcher.stores import Folder, Open, Stored, StoreError

if TYPE_CHECKING:
    from launcher.desk import Strangers

MAIN_VARIABLE, OWN_VARIABLE = "MAIN_JOB_RUN_OCID", "JOB_RUN_OCID"
ADS_VARIABLE = "TRAINYARD_ADS_PEERS"
VARIABLES = {ADS_VARIABLE: "1: other nodes of the run may have images that ADS built (docs/launcher.md)"}
# As much of an OCID as consoles show and no two job runs share.
_LETTERS = 12
# Where OCI unpacks a job's artifact, in the home of the node's user.
_ARTIFACT = "decompressed_artifact"
STOP = "stop"
_MAIN, _WORKER = "MAIN", "WORKER"
# What a node's file says, by kind of cluster and mode; its first key is the address. ADS makes variables of all of it.
_FILES: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "DASK": {
        _MAIN: {"OCI__MAIN_IP": "{ip}", "SCHEDULER_IP": "{ip}", "tmpdir": "{folder}"},
        _WORKER: {"OCI__WORKER_IP": "{ip}", "tmpdir": "{folder}"},
    },
    "PYTORCH": {_MAIN: {"MASTER_ADDR": "{ip}"}, _WORKER: {"OCI__WORKER_IP": "{ip}"}},
}
_NEEDED = ("OCI__WORK_DIR", "OCI__CLUSTER_TYPE", "OCI__MODE", "JOB_OCID", "JOB_RUN_OCID")


# The names by which images of ADS are told the same.
_URL, _BRANCH, _COMMIT, _SECRET = (
    f"OCI__RUNTIME_{name}" for name in ("URI", "GIT_BRANCH", "GIT_COMMIT", "GIT_SECRET_ID")
)
_OUTPUT = "OCI__SYNC_DIR"


class NodeIdentity(Identity):
    """What OCI tells a node, and what scripts made for ADS expect."""

    def rank(self) -> int:
        """Node groups share one document: OCI numbers their nodes."""
        text = self.environment.get("NODE_RANK", "")
        if not text.isdigit():
            raise LaunchError("NODE_RANK is not set: OCI Data Science sets it to the node's rank in node groups")
        return int(text)

    def start(self, rank: int, nodes: int) -> str:
        """The main job run's name; node groups are one job run."""
        own = self.environment.get(OWN_VARIABLE, "")
        if self.source == "cluster-metadata":
            return of_job_run(own)
        if self.source != "bucket":
            return ""
        main = self.environment.get(MAIN_VARIABLE) or ("" if rank else own)
        if not main and nodes > 1:
            raise LaunchError(
                f"{MAIN_VARIABLE} is not set, so this node could meet nodes of an earlier start: start the run through"
                " its stack, or give every node the OCID of rank 0's job run in this variable"
            )
        return of_job_run(main)

    def git(self) -> GitRepository | None:
        """As images of ADS are told, too."""
        url, *rest = (self.environment.get(name, "") for name in (_URL, _BRANCH, _COMMIT, _SECRET))
        return GitRepository(url, *rest) if url else None

    def secret(self, name: str, say: Voice) -> bytes:
        """From the vault, by its OCID."""

        return read(self.environment, name, say)

    def unpacked(self) -> Path | None:
        """In the home of the node's user."""
        home = self.environment.get("HOME")
        return Path(home) / _ARTIFACT if home else None

    def outputs(self, folder: str) -> Mapping[str, str]:
        """Scripts made for ADS know it by this name. An image may say where it is."""
        return {_OUTPUT: self.environment.get(_OUTPUT) or folder}

    def strangers(self, launch: Launch, open_folder: Open) -> Strangers | None:
        """Nodes whose images ADS built."""
        if not flag(self.environment, ADS_VARIABLE) or launch.nodes == 1:
            return None

        return exchange(launch, open_folder, self.environment)


def of_job_run(ocid: str) -> str:
    """The end of the main job run's OCID, by which people find one from the other."""
    return ocid.rpartition(".")[2][-_LETTERS:]


@dataclass
class Ads:
    """What this node says to and hears from nodes that only know ADS's way."""

    launch: Launch
    folder: Folder
    files: Mapping[str, Mapping[str, str]]
    mode: str
    job_run: str
    oldest: float
    members: frozenset[int] = frozenset()
    alone: str = "nodes whose images ADS built do not start again with the others: raise `attempt`"
    _looked: bool = False
    _known: dict[tuple[str, str], str] = field(default_factory=dict)

    def announcement(self, address: str) -> tuple[str, dict[str, str]]:
        """This node's file: its name and what it says."""
        name = "MAIN_config.json" if self.mode == _MAIN else f"{self.mode}_{self.job_run}_config.json"
        values = {"ip": address, "folder": self.folder.uri}
        return name, {key: text.format(**values) for key, text in self.files[self.mode].items()}

    def farewell(self) -> tuple[str, str]:
        """What the main node leaves when it ends for good."""
        return STOP, STOP

    def events(self, ours: Mapping[int, Event], since: float) -> list[Event]:
        """Signs of the nodes that only ADS's files tell of, as the board has them; for ranks that nobody else has."""
        if not since:
            return []
        listed = self.folder.list("")
        ended = any(item.name == STOP for item in listed)
        if ended and not self._looked:
            raise LaunchError(
                f"{self.folder.uri} holds `{STOP}` of an earlier start of this job, so images built with ADS would end"
                " at once. Remove that folder, then start again"
            )
        self._looked = True
        found = self._nodes(listed, {event.address for event in ours.values()}, since)
        free = [rank for rank in range(1, self.launch.nodes) if rank not in ours]
        addresses = {0: found[_MAIN][0]} if found[_MAIN] and 0 not in ours else {}
        addresses.update({rank: found[_WORKER][place] for place, rank in enumerate(free[: len(found[_WORKER])])})
        self.members = frozenset(addresses)
        signs = [Event(0, rank, f"ads-{address}", since, address=address) for rank, address in addresses.items()]
        # The file says that the cluster has ended, not how: a job run's own state tells that.
        return signs + [Event(0, sign.rank, sign.nonce, since, how=SUCCEEDED) for sign in signs if ended]

    def _nodes(self, listed: Sequence[Stored], ours: set[str], since: float) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {_MAIN: [], _WORKER: []}
        for item in listed:
            mode = item.name.partition("_")[0]
            named = item.name.endswith("_config.json") and "/" not in item.name and mode in found
            if named and seconds(item.modified) >= since - self.oldest:
                address = self._address(item, mode)
                if address and address not in ours:
                    found[mode].append(address)
        return found

    def _address(self, item: Stored, mode: str) -> str:
        key = (item.name, item.etag)
        if key not in self._known:
            self._known[key] = _read(self.folder.get(item.name), next(iter(self.files[mode])))
        return self._known[key]


def _read(content: bytes | None, key: str) -> str:
    try:
        read: Any = json.loads(content or b"{}")
        return str(read.get(key) or "")
    except (ValueError, AttributeError, RecursionError):
        return ""


def exchange(launch: Launch, open_folder: Open, environment: Mapping[str, str]) -> Ads:
    """LaunchError where the two kinds of nodes cannot train together."""
    absent = [name for name in _NEEDED if not environment.get(name)]
    if absent or launch.peers["from"] != "bucket":
        why = f"{', '.join(absent)} not set" if absent else f"peers come from {launch.peers['from']}"
        raise LaunchError(f"{ADS_VARIABLE} is for job runs of one node each that meet in the bucket, but {why}")
    cluster, mode = environment["OCI__CLUSTER_TYPE"], environment["OCI__MODE"]
    if cluster not in _FILES or mode not in _FILES[cluster]:
        raise LaunchError(
            f"{ADS_VARIABLE}: our launcher and images built with ADS train together with {' and '.join(_FILES)} only,"
            f" not as {mode} of {cluster} (docs/launcher.md says why): use one kind of image for the whole run"
        )
    uri = f"{environment['OCI__WORK_DIR'].rstrip('/')}/{environment['JOB_OCID']}"
    return Ads(launch, open_folder(uri), _FILES[cluster], mode, environment["JOB_RUN_OCID"], patience(environment))


def read(environment: Mapping[str, str], ocid: str, say: Voice) -> bytes:
    """The content of a secret's current version."""
    connection = Connection(secrets_endpoint(environment), Signer(environment), say)
    try:
        bundle = json.loads(connection.call("GET", f"/20190301/secretbundles/{ocid}").content)
        return base64.b64decode(bundle["secretBundleContent"]["content"])
    except (StoreError, ValueError, KeyError) as error:
        raise MissingError(f"the secret with the key of the code's repository cannot be read: {error}") from None
    finally:
        connection.close()
