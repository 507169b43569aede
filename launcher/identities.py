# SPDX-License-Identifier: Apache-2.0
"""What a node learns from its platform. Each platform's class overrides the methods that differ there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.errors import LaunchError

if TYPE_CHECKING:
    from launcher.desk import ForeignNodes
    from launcher.document import Launch
    from launcher.say import Voice
    from launcher.stores import Open

START_VARIABLE = "TRAINYARD_START"
# The name of a start becomes a folder's name.
_START = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class GitRepository:
    """A repository that every node clones. `secret`: the platform's name of the secret with the key."""

    url: str
    branch: str = ""
    commit: str = ""
    secret: str = ""


@dataclass(frozen=True)
class Identity:
    """The defaults of a platform: values from the launch document, or neutral ones."""

    document: Mapping[str, Any]
    environment: Mapping[str, str]

    @property
    def source(self) -> str:
        """The source of peers' addresses."""
        return str(self.document["peers"]["from"])

    def rank(self) -> int:
        """This node's rank. The platform knows it if the document does not."""
        raise LaunchError("the launch document has no `rank`, and this platform sets none: start the run by its stack")

    def start(self, rank: int, nodes: int) -> str:
        """The name of this start of the run, the same on all nodes. Empty: only the attempt distinguishes starts."""
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
        """The ports that the platform reserves for a node of a role by this label; empty if it reserves none."""
        return ()

    def address(self) -> str:
        """The address of this node that the platform tells the others; empty if it does not."""
        return ""

    def exit_code(self, code: int) -> int:
        """The exit code that the platform reads as the same kind of failure (launcher/exits.py)."""
        return code

    @property
    def starts_nodes_again(self) -> bool:
        """Whether the platform itself starts single nodes again, and ends the run by its completion policy. Then a
        failed node may come back, and nodes do not stop because another one failed."""
        return False

    def git(self) -> GitRepository | None:
        """The repository of the run's code, if the platform names one."""
        return None

    def secret(self, name: str, say: Voice) -> bytes:
        """The content of a secret that the platform keeps."""
        raise LaunchError(f"the code's repository needs the secret {name}, but this platform keeps no secrets")

    def unpacked(self) -> Path | None:
        """Where the platform unpacks the job's code."""
        return None

    def outputs(self, folder: str) -> Mapping[str, str]:
        """The platform's own variables for a script's output folder, with their values."""
        return {}

    def foreign_nodes(self, launch: Launch, open_folder: Open) -> ForeignNodes | None:
        """The run's nodes whose images have another launcher, if this node has to meet such nodes."""
        return None
