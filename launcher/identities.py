# SPDX-License-Identifier: Apache-2.0
"""Who a node is to its platform. A platform's own class overrides the methods for which it has another answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.errors import LaunchError

if TYPE_CHECKING:
    from launcher.desk import Strangers
    from launcher.document import Launch
    from launcher.say import Voice
    from launcher.stores import Open

START_VARIABLE = "TRAINYARD_START"
# It becomes a folder's name.
_START = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class GitRepository:
    """A repository that every node clones. `secret` is what the platform calls the key to it."""

    url: str
    branch: str = ""
    commit: str = ""
    secret: str = ""


@dataclass(frozen=True)
class Identity:
    """The answers of a platform that has nothing of its own: everything is in the launch document, or neutral."""

    document: Mapping[str, Any]
    environment: Mapping[str, str]

    @property
    def source(self) -> str:
        """Where peers come from."""
        return str(self.document["peers"]["from"])

    def rank(self) -> int:
        """This node's rank, where the document leaves it to the platform."""
        raise LaunchError(
            "the launch document has no `rank`, and neither has this platform: start the run by its stack"
        )

    def start(self, rank: int, nodes: int) -> str:
        """The name of this start of the run, alike on all nodes; empty where only the attempt tells starts apart."""
        name = self.environment.get(START_VARIABLE, "")
        if name and not _START.fullmatch(name):
            raise LaunchError(f"{START_VARIABLE} is {name!a}: use letters, digits, `-` and `_` only")
        if not name and nodes > 1 and self.source == "bucket":
            raise LaunchError(
                f"{START_VARIABLE} is not set, so this node could meet nodes of an earlier start: start the run through"
                " its stack, or give every node the same new name in this variable"
            )
        return name

    def ports(self, label: str, role: str, index: int) -> tuple[int, ...]:
        """The ports that the platform reserves for a node of a role by this label; empty where it does not."""
        return ()

    def address(self) -> str:
        """The address by which the platform tells others of this node; empty where it tells none."""
        return ""

    def exit_code(self, code: int) -> int:
        """The code by which the platform knows of which kind a failure is (launcher/exits.py), if it has own kinds."""
        return code

    @property
    def starts_nodes_again(self) -> bool:
        """Whether the platform itself starts single nodes again, and ends the run by its completion policy. Then a
        failure is no node's last word, and nodes leave it to the platform to end the others."""
        return False

    def git(self) -> GitRepository | None:
        """Code from git that the platform tells of in its own way."""
        return None

    def secret(self, name: str, say: Voice) -> bytes:
        """The content of a secret that the platform keeps."""
        raise LaunchError(f"the code's repository needs the secret {name}, but this platform keeps no secrets")

    def unpacked(self) -> Path | None:
        """Where the platform unpacks the job's code."""
        return None

    def outputs(self, folder: str) -> Mapping[str, str]:
        """Variables by which scripts made for the platform know their output folder, with the folder of each."""
        return {}

    def strangers(self, launch: Launch, open_folder: Open) -> Strangers | None:
        """The other nodes whose images have another launcher, where this node is to meet such nodes."""
        return None
