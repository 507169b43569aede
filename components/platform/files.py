# SPDX-License-Identifier: Apache-2.0
"""The interface of a bucket for `trainyard data`: objects, parts of uploads, and a store that reads and writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from catalog.platforms import Capability, platform_in, require_capability
from components.platform.client import Where
from schemas.model import Stack


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of the bucket. `checksum` has the form of streams.py, or is empty if the store states none. `modified`
    is a time of RFC 3339."""

    name: str
    size: int
    checksum: str
    etag: str
    modified: str


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part of an upload that is not complete yet."""

    size: int
    md5: str
    etag: str


@dataclass(frozen=True, slots=True)
class Content:
    """A slice of an open file, with its MD5 in base64. It can be read several times, for retries."""

    file: int
    start: int
    size: int
    md5: str


class Sink(Protocol):
    """Takes the bytes of a range."""

    def restart(self) -> None:
        """Called before the first byte, at the first attempt and at each retry."""

    def take(self, block: bytes) -> None: ...


class Store(Protocol):
    """One bucket, for use by several threads. It retries busy responses and lost connections itself.

    Raises ObjectChangedError if the object is no longer `replaces` (None: there was no object).
    """

    @property
    def address(self) -> str:
        """The address of the bucket, in the spelling of stack files."""

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Objects whose names have the prefix, in order of their names."""

    def look(self, name: str) -> tuple[StoredObject, int | None] | None:
        """One object, and the size of its parts if the client that uploaded it recorded that. None: no such object."""

    def read(self, item: StoredObject, start: int, length: int, sink: Sink) -> None: ...

    def put(self, name: str, content: Content, replaces: StoredObject | None) -> None:
        """Uploads a whole object. Raises ContentChangedError if the bytes have another MD5."""

    def begin(self, name: str, part_bytes: int, replaces: StoredObject | None) -> str:
        """Begins an upload in parts, and returns its id."""

    def parts(self, name: str, upload: str) -> dict[int, StoredPart] | None:
        """The parts that have arrived, by number from 1. None if the upload does not exist any more."""

    def put_part(self, name: str, upload: str, number: int, content: Content) -> None: ...

    def commit(self, name: str, upload: str, parts: Mapping[int, StoredPart], replaces: StoredObject | None) -> str:
        """Makes an object of the parts, and returns its checksum."""

    def abandon(self, name: str, upload: str) -> None:
        """Removes an upload and its parts, if the caller has the permission."""


@dataclass(frozen=True)
class StoreRequest:
    """The stack whose bucket to open, the caller, and the purpose: list, get or put."""

    purpose: str
    where: Where
    stack: Stack | None = None


class StoreOpener(Protocol):
    """Opens buckets with one caller's credentials."""

    def bucket(self, name: str) -> Store: ...

    def folder(self, address: str) -> tuple[Store, str]:
        """The store and the folder's name in it, from a folder's address."""


class TransferError(Exception):
    """The whole transfer failed. The text is the message for the user."""


@dataclass(frozen=True, slots=True)
class StoreOpeners(Capability):
    """Makes the opener of a platform's stores."""

    place = "client.files.STORE_OPENERS"
    lacking = "the stack runs on {platform}: trainyard cannot move files of runs there"
    error = TransferError
    make: Callable[[StoreRequest], StoreOpener]


def store_opener(request: StoreRequest) -> StoreOpener:
    """The opener for the stack's platform. Raises TransferError if trainyard supports no store of the platform."""
    return require_capability(platform_in(request.where.config), StoreOpeners).make(request)


class FileProblemError(Exception):
    """One file cannot be moved. The transfer continues with the others."""


class ObjectChangedError(FileProblemError):
    """Another client wrote the object after we read its metadata."""

    def __init__(self) -> None:
        super().__init__("another client changed it in the bucket in the meantime; run the same command again")


class ContentChangedError(FileProblemError):
    """The file was changed after its checksum was computed."""

    def __init__(self) -> None:
        super().__init__("it changed while it was being read; run the same command again when nobody writes it")
