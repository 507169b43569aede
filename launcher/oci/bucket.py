# SPDX-License-Identifier: Apache-2.0
"""`oci://<bucket>@<namespace>/<folder>`: a folder in a bucket of OCI's object storage."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from launcher import object_store
from launcher.errors import LaunchError, MissingError
from launcher.object_store import Connection
from launcher.oci.principal import Signer, storage_endpoint
from launcher.peers import PeerRequest, name_ranks
from launcher.printing import LinePrinter
from launcher.stores import Stored

_URI = re.compile(r"oci://([^@/]+)@([^/]+)/?(.*)")
VARIABLE = "CLUSTER_NODES_METADATA_FILE"
_INTERVAL = 0.1


class Store:
    """OCI's object storage. All connections share one signer: its key and its clock."""

    def __init__(self, environment: Mapping[str, str], say: LinePrinter) -> None:
        self._environment = environment
        self._say = say
        self._signer = Signer(environment)

    def folder(self, uri: str) -> BucketFolder:
        """Opens a folder with a connection of its own."""
        return BucketFolder(uri, Connection(storage_endpoint(self._environment), self._signer, self._say))


class BucketFolder(object_store.BucketFolder):
    """A folder in a bucket of OCI's object storage."""

    mtime_header = "opc-meta-mtime"

    def __init__(self, uri: str, connection: Connection) -> None:
        match = _URI.fullmatch(uri)
        if not match:
            raise LaunchError(f"`{uri}` is not a folder in a bucket: write oci://<bucket>@<namespace>/<folder>")
        bucket, namespace, prefix = match.groups()
        super().__init__(uri, connection, f"/n/{quote(namespace, safe='')}/b/{quote(bucket, safe='')}/o", prefix)

    def pages(self, prefix: str) -> Iterator[Stored]:
        """Lists a thousand objects at a time."""
        start = ""
        while True:
            query = f"prefix={quote(prefix, safe='')}&fields=name,timeModified,size,etag&limit=1000"
            if start:
                query += f"&start={quote(start, safe='')}"
            page: Any = json.loads(self.connection.call("GET", f"{self.place}?{query}").content)
            for row in page["objects"]:
                name = row["name"][len(self.prefix) :]
                yield Stored(name, row.get("timeModified", ""), row.get("size", 0), row.get("etag", ""))
            start = page.get("nextStartWith") or ""
            if not start:
                return


def find_peer_addresses(request: PeerRequest) -> dict[int, str]:
    """Reads OCI's file of addresses whenever it has changed, until it names every rank."""
    path = request.environment.get(VARIABLE)
    if not path:
        raise LaunchError(f"{VARIABLE} is not set: OCI Data Science sets it to the file of addresses in node groups")
    missing = list(range(request.launch.nodes))
    request.wait.what = lambda: name_ranks(request.launch, missing)
    seen: tuple[int, int, int] | None = None
    addresses: dict[int, str] = {}
    while True:
        stamp = _file_stamp(path)
        if stamp is not None and stamp != seen:
            seen, addresses = stamp, _read_addresses(path, addresses)
            missing[:] = [rank for rank in range(request.launch.nodes) if rank not in addresses]
        if not missing:
            return {rank: addresses[rank] for rank in range(request.launch.nodes)}
        if not request.wait.turn(_INTERVAL):
            raise MissingError(request.wait.timeout_message())


def _file_stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read_addresses(path: str, known: dict[int, str]) -> dict[int, str]:
    """The addresses in the file, or the previous ones while the file is being written."""
    try:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
        return {int(row["Rank"]): str(row["IPAddress"]) for row in rows if row.get("IPAddress")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return known
