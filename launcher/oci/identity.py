# SPDX-License-Identifier: Apache-2.0
"""A node of an OCI Data Science job run."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.board import SUCCEEDED, Event, rfc3339_seconds
from launcher.document import Launch
from launcher.errors import LaunchError, MissingError
from launcher.object_store import Connection
from launcher.oci.principal import Signer, secrets_endpoint
from launcher.platforms import GitRepository, Identity
from launcher.printing import LinePrinter
from launcher.readiness import peers_timeout
from launcher.settings import flag_setting
from launcher.stores import Folder, Open, Stored, StoreError

if TYPE_CHECKING:
    from launcher.board_client import ForeignNodes

MAIN_VARIABLE, OWN_VARIABLE = "MAIN_JOB_RUN_OCID", "JOB_RUN_OCID"
ADS_VARIABLE = "TRAINYARD_ADS_PEERS"
VARIABLES = {ADS_VARIABLE: "1: other nodes of the run may have images that ADS built (docs/launcher.md)"}
# How many letters of an OCID name a start: as many as consoles show. No two job runs share them.
_LETTERS = 12
# Where OCI unpacks a job's artifact, in the home of the node's user.
_ARTIFACT = "decompressed_artifact"
STOP = "stop"
_MAIN, _WORKER = "MAIN", "WORKER"
# The content of a node's file, by kind of cluster and mode. The first key is the address. ADS sets a variable for each
# key.
_FILES: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "DASK": {
        _MAIN: {"OCI__MAIN_IP": "{ip}", "SCHEDULER_IP": "{ip}", "tmpdir": "{folder}"},
        _WORKER: {"OCI__WORKER_IP": "{ip}", "tmpdir": "{folder}"},
    },
    "PYTORCH": {_MAIN: {"MASTER_ADDR": "{ip}"}, _WORKER: {"OCI__WORKER_IP": "{ip}"}},
}
_NEEDED = ("OCI__WORK_DIR", "OCI__CLUSTER_TYPE", "OCI__MODE", "JOB_OCID", "JOB_RUN_OCID")


# The variables that name the repository; ADS's images read them too.
_URL, _BRANCH, _COMMIT, _SECRET = (
    f"OCI__RUNTIME_{name}" for name in ("URI", "GIT_BRANCH", "GIT_COMMIT", "GIT_SECRET_ID")
)
_OUTPUT = "OCI__SYNC_DIR"


class NodeIdentity(Identity):
    """The identity of a job run, and the variables that scripts made for ADS expect."""

    @property
    def may_start_elsewhere(self) -> bool:
        """Each job run gets a machine of its own."""
        return True

    def rank(self) -> int:
        """The rank in a node group: its nodes share one launch document, so OCI numbers them."""
        text = self.environment.get("NODE_RANK", "")
        if not text.isdigit():
            raise LaunchError("NODE_RANK is not set: OCI Data Science sets it to the node's rank in node groups")
        return int(text)

    def start(self, rank: int, nodes: int) -> str:
        """A name from the main job run's OCID. A node group is one job run."""
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
        """The repository in the variables that ADS's images read, too."""
        url, *rest = (self.environment.get(name, "") for name in (_URL, _BRANCH, _COMMIT, _SECRET))
        return GitRepository(url, *rest) if url else None

    def secret(self, name: str, say: LinePrinter) -> bytes:
        """Reads a secret from the vault, by its OCID."""

        return read_oci_secret(self.environment, name, say)

    def unpacked(self) -> Path | None:
        """The folder of the job's artifact in the home of the node's user."""
        home = self.environment.get("HOME")
        return Path(home) / _ARTIFACT if home else None

    def outputs(self, folder: str) -> Mapping[str, str]:
        """The variable that scripts made for ADS read. An image may set it to another folder."""
        return {_OUTPUT: self.environment.get(_OUTPUT) or folder}

    def foreign_nodes(self, launch: Launch, open_folder: Open) -> ForeignNodes | None:
        """Nodes whose images ADS built."""
        if not flag_setting(self.environment, ADS_VARIABLE) or launch.nodes == 1:
            return None

        return connect_ads(launch, open_folder, self.environment)


def of_job_run(ocid: str) -> str:
    """The end of the main job run's OCID, so that people find the job run of a start and vice versa."""
    return ocid.rpartition(".")[2][-_LETTERS:]


@dataclass
class Ads:
    """Communicates with nodes whose images ADS built, through ADS's files."""

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
        """This node's file: its name and its content."""
        name = "MAIN_config.json" if self.mode == _MAIN else f"{self.mode}_{self.job_run}_config.json"
        values = {"ip": address, "folder": self.folder.uri}
        return name, {key: text.format(**values) for key, text in self.files[self.mode].items()}

    def farewell(self) -> tuple[str, str]:
        """The file that the main node writes when it ends for good."""
        return STOP, STOP

    def events(self, ours: Mapping[int, Event], since: float) -> list[Event]:
        """The events of nodes that only have ADS's files. They get the ranks that no other node has."""
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
        arrivals = [Event(0, rank, f"ads-{address}", since, address=address) for rank, address in addresses.items()]
        # The file does not say how the cluster ended. The state of the job runs does.
        return arrivals + [Event(0, arrival.rank, arrival.nonce, since, how=SUCCEEDED) for arrival in arrivals if ended]

    def _nodes(self, listed: Sequence[Stored], ours: set[str], since: float) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {_MAIN: [], _WORKER: []}
        for item in listed:
            mode = item.name.partition("_")[0]
            named = item.name.endswith("_config.json") and "/" not in item.name and mode in found
            if named and rfc3339_seconds(item.modified) >= since - self.oldest:
                address = self._address(item, mode)
                if address and address not in ours:
                    found[mode].append(address)
        return found

    def _address(self, item: Stored, mode: str) -> str:
        key = (item.name, item.etag)
        if key not in self._known:
            try:
                read: Any = json.loads(self.folder.get(item.name) or b"{}")
                self._known[key] = str(read.get(next(iter(self.files[mode]))) or "")
            except (ValueError, AttributeError, RecursionError):
                self._known[key] = ""
        return self._known[key]


def connect_ads(launch: Launch, open_folder: Open, environment: Mapping[str, str]) -> Ads:
    """Prepares the communication. LaunchError: the two kinds of nodes cannot train together."""
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
    return Ads(launch, open_folder(uri), _FILES[cluster], mode, environment["JOB_RUN_OCID"], peers_timeout(environment))


def read_oci_secret(environment: Mapping[str, str], ocid: str, say: LinePrinter) -> bytes:
    """The content of a secret's current version."""
    connection = Connection(secrets_endpoint(environment), Signer(environment), say)
    try:
        bundle = json.loads(connection.call("GET", f"/20190301/secretbundles/{ocid}").content)
        return base64.b64decode(bundle["secretBundleContent"]["content"])
    except (StoreError, ValueError, KeyError) as error:
        raise MissingError(f"the secret with the key of the code's repository cannot be read: {error}") from None
    finally:
        connection.close()
