# SPDX-License-Identifier: Apache-2.0
"""Finds the platform of a node. Only this module of the launcher names platforms. It imports only what is used.

A platform may have a store, a source of peers' addresses, and an identity (launcher/identities.py) for its nodes. The
launch document says which: by the scheme of a folder's address, or by where peers come from. Where it says neither,
the environment does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

from launcher.errors import LaunchError
from launcher.identities import Identity


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
        peers={"openpai": "launcher.openpai.identity"},
        identity="launcher.openpai.identity",
        prefixes=("PAI_",),
    ),
    PlatformModules(stores={"s3": "launcher.aws_dl1.bucket"}, identity="launcher.aws_dl1.identity"),
    # A folder that all nodes mount is possible on any platform.
    PlatformModules(stores={"file": "launcher.shared.store"}),
)


def store_of(uri: str) -> ModuleType:
    """The module that opens a folder with this address."""
    scheme = _scheme(uri)
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
    module = next(_fitting(document, environment), "")
    own: type[Identity] = import_module(module).NodeIdentity if module else Identity
    return own(document, environment)


def _fitting(document: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[str]:
    """The modules that fit. The document decides first: people may try a node on a machine of another platform."""
    rows = [row for row in PLATFORMS if row.identity]
    source, scheme = document["peers"]["from"], _scheme(document["folder"] or "")
    yield from (row.identity for row in rows if source in row.peers)
    yield from (row.identity for row in rows if scheme in row.stores)
    yield from (row.identity for row in rows if any(name.startswith(row.prefixes) for name in environment))


def variables() -> dict[str, str]:
    """The platforms' own variables and their purposes, for `--help`."""
    found: dict[str, str] = {}
    for row in PLATFORMS:
        found.update(import_module(row.identity).VARIABLES if row.identity else {})
    return found


def _scheme(uri: str) -> str:
    scheme, found, _ = uri.partition("://")
    return scheme if found else ""
