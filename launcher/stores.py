# SPDX-License-Identifier: Apache-2.0
"""A store keeps folders of objects that all nodes of a run see. Each platform may bring one (launcher/platforms.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, Callable, Mapping

from launcher import platforms
from launcher.compatibility import Protocol
from launcher.say import Voice

# Statuses are HTTP's, because most stores speak it. A refusal may be access that is not in force yet.
REFUSED = frozenset({400, 401, 403, 404})
NOT_TAKEN, EXISTS = 400, 412


class StoreError(Exception):
    """A call that failed for good, or for too long. Status 0: the store did not answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class ChangedError(StoreError):
    """A file changed while it was being put, so its digest is wrong; the store did not keep it."""


@dataclass(frozen=True)
class Stored:
    """One object of a list; the name is relative to the folder. `modified` is RFC 3339, by the store's own clock."""

    name: str
    modified: str
    size: int
    etag: str


class Folder(Protocol):
    """One folder, over a connection of its own: one thread uses it. Names are relative to the folder."""

    @property
    def uri(self) -> str:
        """The address it was opened by."""

    @property
    def host(self) -> str:
        """The store's host, by which a node finds out its own address; empty where the store is on no network."""

    def list(self, below: str) -> list[Stored]:
        """All objects whose names begin so, in order of their names."""

    def put(self, name: str, content: bytes, new: bool = False) -> str:
        """Puts an object whole or not at all; its etag. `new`: EXISTS where there is such an object already."""

    def put_file(self, name: str, file: IO[bytes], size: int, mtime: float, md5: str) -> str:
        """Puts a file from its beginning, of a known size and digest; its etag. ChangedError: another digest."""

    def get(self, name: str) -> bytes | None:
        """The content, None where there is no such object."""

    def get_file(self, name: str, path: str) -> str:
        """Writes an object to `path`, whole or not at all, with the time that the file had; the object's etag."""

    def remove(self, name: str) -> None:
        """Removes an object; it need not be there."""

    def give_up_when(self, stopped: Callable[[], bool]) -> None:
        """Ends a long series of attempts once this is so."""

    def close(self) -> None:
        """Ends the connection; the next use opens it again."""


class Store(Protocol):
    """What the folders of one store share: who this node is there, for example."""

    def folder(self, uri: str) -> Folder:
        """Opens a folder; LaunchError where the address is none of this store."""


Open = Callable[[str], Folder]


def opener(environment: Mapping[str, str], say: Voice) -> Open:
    """A function that opens folders by their addresses, each with a connection of its own."""
    stores: dict[str, Store] = {}

    def open_folder(uri: str) -> Folder:
        module = platforms.store_of(uri)
        if module.__name__ not in stores:
            stores[module.__name__] = module.Store(environment, say)
        return stores[module.__name__].folder(uri)

    return open_folder
