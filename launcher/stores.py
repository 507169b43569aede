# SPDX-License-Identifier: Apache-2.0
"""A store has folders of objects that all nodes of a run see. Each platform may have one (launcher/platforms.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, Callable, Mapping

from launcher import platforms
from launcher.compatibility import Protocol
from launcher.printing import LinePrinter

# The statuses of HTTP, which most stores use. A refusal may pass, because new access comes into force late.
REFUSED = frozenset({400, 401, 403, 404})
NOT_TAKEN, EXISTS = 400, 412


class StoreError(Exception):
    """A call failed, and a retry would not help or there is no time for one. Status 0: the store did not answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class ChangedError(StoreError):
    """A file changed during its upload, so that its digest is wrong. The store did not keep it."""


@dataclass(frozen=True)
class Stored:
    """An object of a list. `name` is relative to the folder, `modified` is RFC 3339 by the store's clock."""

    name: str
    modified: str
    size: int
    etag: str


class Folder(Protocol):
    """A folder with a connection of its own, for one thread. Names are relative to the folder."""

    @property
    def uri(self) -> str:
        """The address with which it was opened."""

    @property
    def host(self) -> str:
        """The store's host, from which a node derives its own address; empty if the store is not on a network."""

    @property
    def trouble(self) -> str:
        """Why calls fail at the moment, in the store's words; empty if the last one was answered."""

    def list(self, below: str) -> list[Stored]:
        """All objects whose names begin with `below`, ordered by name."""

    def put(self, name: str, content: bytes, new: bool = False) -> str:
        """Puts an object atomically and returns its etag. `new`: fails with EXISTS if the object exists already."""

    def put_file(self, name: str, file: IO[bytes], size: int, mtime: float, md5: str) -> str:
        """Puts a file and returns its etag. ChangedError: the content does not have this size and digest."""

    def get(self, name: str) -> bytes | None:
        """The content of an object; None if there is no such object."""

    def get_file(self, name: str, path: str) -> str:
        """Writes an object to `path` atomically, with the file's modification time. Returns the object's etag."""

    def remove(self, name: str) -> None:
        """Removes an object, which need not exist."""

    def give_up_when(self, stopped: Callable[[], bool]) -> None:
        """Stops retries as soon as `stopped` returns True."""

    def report_to(self, say: LinePrinter) -> None:
        """Says from now on there what keeps the store from answering."""

    def close(self) -> None:
        """Closes the connection; the next use opens it again."""


class Store(Protocol):
    """A store: what its folders share, for example this node's identity."""

    def folder(self, uri: str) -> Folder:
        """Opens a folder. LaunchError if the address does not belong to this store."""


Open = Callable[[str], Folder]


def folder_opener(environment: Mapping[str, str], say: LinePrinter) -> Open:
    """Returns a function that opens folders by their addresses, each with a connection of its own."""
    stores: dict[str, Store] = {}

    def open_folder(uri: str) -> Folder:
        module = platforms.store_of(uri)
        if module.__name__ not in stores:
            stores[module.__name__] = module.Store(environment, say)
        return stores[module.__name__].folder(uri)

    return open_folder
