# SPDX-License-Identifier: Apache-2.0
"""A node of an OCI Data Science job run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.errors import LaunchError
from launcher.identities import GitRepository, Identity
from launcher.say import Voice
from launcher.settings import flag

if TYPE_CHECKING:
    from launcher.desk import Strangers
    from launcher.document import Launch
    from launcher.stores import Open

MAIN_VARIABLE, OWN_VARIABLE = "MAIN_JOB_RUN_OCID", "JOB_RUN_OCID"
ADS_VARIABLE = "TRAINYARD_ADS_PEERS"
VARIABLES = {ADS_VARIABLE: "1: other nodes of the run may have images that ADS built (docs/launcher.md)"}
# As much of an OCID as consoles show and no two job runs share.
_LETTERS = 12
# Where OCI unpacks a job's artifact, in the home of the node's user.
_ARTIFACT = "decompressed_artifact"
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
        from launcher.oci import vault

        return vault.read(self.environment, name, say)

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
        from launcher.oci import ads

        return ads.exchange(launch, open_folder, self.environment)


def of_job_run(ocid: str) -> str:
    """The end of the main job run's OCID, by which people find one from the other."""
    return ocid.rpartition(".")[2][-_LETTERS:]
