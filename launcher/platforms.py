# SPDX-License-Identifier: Apache-2.0
"""The platforms of nodes. Only this module of the launcher names them. It imports only the platform that a node uses.

A platform may have a store, a source of peers' addresses, and an identity for its nodes: what a node learns from its
platform. The launch document names the platform, by the scheme of a folder's address or by the source of peers. If it
does neither, the environment decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from launcher.errors import LaunchError

if TYPE_CHECKING:
    from launcher.board_client import ForeignNodes
    from launcher.document import Launch
    from launcher.printing import LinePrinter
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
    """The defaults: values from the launch document, or neutral ones. A platform's class overrides what differs."""

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
        """This node's address, if the platform itself tells it to the other nodes; otherwise empty."""
        return ""

    def exit_code(self, code: int) -> int:
        """The exit code that the platform reads as the same kind of failure (launcher/exits.py)."""
        return code

    @property
    def starts_nodes_again(self) -> bool:
        """Whether the platform itself starts single nodes again, and ends the run by its completion policy. Then a
        failed node may come back, and nodes do not stop because another one failed."""
        return False

    @property
    def may_start_elsewhere(self) -> bool:
        """Whether another start of this node may get another machine. Otherwise it would fail in the same way."""
        return False

    def transport_problem(self, transport: str) -> str:
        """Why data cannot move between nodes as planned; empty if it can, or if nobody can tell."""
        return ""

    def git(self) -> GitRepository | None:
        """The repository of the run's code, if the platform names one."""
        return None

    def secret(self, name: str, say: LinePrinter) -> bytes:
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


@dataclass(frozen=True)
class PlatformModules:
    """One platform's modules. `stores` by scheme: a module with `Store`. `peers` by source: a module with `find`.

    `identity`: a module with `NodeIdentity` and `VARIABLES`. Only its nodes have variables that
    begin with one of `prefixes`.
    """

    stores: Mapping[str, str] = field(default_factory=dict)
    peers: Mapping[str, str] = field(default_factory=dict)
    identity: str = ""
    prefixes: tuple[str, ...] = ()


PLATFORMS = (
    PlatformModules(
        stores={"oci": "launcher.oci.bucket"},
        peers={"cluster-metadata": "launcher.oci.bucket"},
        identity="launcher.oci.identity",
        prefixes=("JOB_RUN_OCID", "MAIN_JOB_RUN_OCID", "OCI_RESOURCE_PRINCIPAL_", "OCI__"),
    ),
    PlatformModules(
        peers={"openpai": "launcher.openpai.identity"}, identity="launcher.openpai.identity", prefixes=("PAI_",)
    ),
    PlatformModules(stores={"s3": "launcher.aws_dl1.bucket"}, identity="launcher.aws_dl1.identity"),
    # A folder that all nodes mount is possible on any platform.
    PlatformModules(stores={"file": "launcher.shared.store"}),
)


def store_of(uri: str) -> ModuleType:
    """The module that opens a folder with this address."""
    scheme = _scheme_of_uri(uri)
    for row in PLATFORMS:
        if scheme in row.stores:
            return import_module(row.stores[scheme])
    schemes = ", ".join(f"{scheme}://" for row in PLATFORMS for scheme in row.stores)
    raise LaunchError(f"this image cannot open `{uri}`, only {schemes}: rebuild it if the address is right")


def peers_of(source: str) -> ModuleType:
    """The module that asks a platform for the addresses of the nodes."""
    for row in PLATFORMS:
        if source in row.peers:
            return import_module(row.peers[source])
    raise LaunchError(f"peers come from `{source}`, which this image does not know: rebuild it")


def identity_of(document: Mapping[str, Any], environment: Mapping[str, str]) -> Identity:
    """The identity of this node; a neutral one if no platform fits."""
    module = next(_fitting_identities(document, environment), "")
    own: type[Identity] = import_module(module).NodeIdentity if module else Identity
    return own(document, environment)


def _fitting_identities(document: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[str]:
    """The modules that fit. The document decides first: people may try a node on a machine of another platform."""
    rows = [row for row in PLATFORMS if row.identity]
    source, scheme = document["peers"]["from"], _scheme_of_uri(document["folder"] or "")
    yield from (row.identity for row in rows if source in row.peers)
    yield from (row.identity for row in rows if scheme in row.stores)
    yield from (row.identity for row in rows if any(name.startswith(row.prefixes) for name in environment))


def platform_variables() -> dict[str, str]:
    """The platforms' own variables and their purposes, for `--help`."""
    found: dict[str, str] = {}
    for row in PLATFORMS:
        found.update(import_module(row.identity).VARIABLES if row.identity else {})
    return found


def _scheme_of_uri(uri: str) -> str:
    scheme, found, _ = uri.partition("://")
    return scheme if found else ""
