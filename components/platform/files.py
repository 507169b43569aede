# SPDX-License-Identifier: Apache-2.0
"""A store of files as people move them: objects, their parts, and what reads and writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from catalog.platforms import platform_in
from components.platform.base import answers
from components.platform.calls import Tell
from components.platform.local_cloud import LocalCloud
from schemas.model import Stack


@dataclass(frozen=True, slots=True)
class StoredObject:
    """`checksum` as streams.py explains it; empty where the store states none. `modified` is RFC 3339."""

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
    """A slice of an open file, with its MD5 in base64. It may be read again and again."""

    file: int
    start: int
    size: int
    md5: str


class Sink(Protocol):
    """Takes the bytes of a range."""

    def restart(self) -> None:
        """The bytes come from the beginning, again if an attempt was cut off."""

    def take(self, block: bytes) -> None: ...


class Store(Protocol):
    """One bucket, used by several threads. Busy answers and lost connections are tried again inside.

    ObjectChangedError: the object is not the one that was looked at (`replaces`, None where there was none).
    """

    @property
    def address(self) -> str:
        """The address of the bucket, as people and stack files write it."""

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Objects whose names begin so, in order of their names."""

    def look(self, name: str) -> tuple[StoredObject, int | None] | None:
        """One object and the size of its parts, where the client that put it wrote that down. None: no such object."""

    def read(self, item: StoredObject, start: int, length: int, sink: Sink) -> None: ...

    def put(self, name: str, content: Content, replaces: StoredObject | None) -> None:
        """Puts a whole object. ContentChangedError: the bytes have another MD5."""

    def begin(self, name: str, part_bytes: int, replaces: StoredObject | None) -> str:
        """Begins an upload in parts; its identifier."""

    def parts(self, name: str, upload: str) -> dict[int, StoredPart] | None:
        """The parts that have arrived, by number from 1. None: there is no such upload any more."""

    def put_part(self, name: str, upload: str, number: int, content: Content) -> None: ...

    def commit(self, name: str, upload: str, parts: Mapping[int, StoredPart], replaces: StoredObject | None) -> str:
        """Makes an object of the parts; its checksum."""

    def abandon(self, name: str, upload: str) -> None:
        """Removes an upload and its parts, as far as the caller may."""


@dataclass(frozen=True)
class StoreRequest:
    """As whom, and for what.

    `purpose`: list, get or put. `stack` and `config` come from the stack's file, None and empty where there is none.
    `cloud`: on the local cloud. `profile`: the caller's, else the one that every client would take.
    """

    purpose: str
    stack: Stack | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    cloud: LocalCloud | None = None
    profile: str | None = None
    tell: Tell = lambda line: None


class StoreOpener(Protocol):
    """Opens stores as one caller."""

    def bucket(self, name: str) -> Store: ...

    def folder(self, address: str) -> tuple[Store, str]:
        """The store that a folder's address names, and the folder's name in it."""


def store_opener(request: StoreRequest) -> StoreOpener:
    """Raises TransferError where the platform has no store that trainyard knows."""
    return answers(platform_in(request.config)).files(request)


class TransferError(Exception):
    """Nothing more can be moved. The text is for the person who waits."""


class FileProblemError(Exception):
    """One file cannot be moved. The others can."""


class ObjectChangedError(FileProblemError):
    """Somebody else wrote the object after we looked at it."""

    def __init__(self) -> None:
        super().__init__("somebody else changed it in the bucket meanwhile; run the same command again")


class ContentChangedError(FileProblemError):
    """The file's bytes are not those of its checksum any more."""

    def __init__(self) -> None:
        super().__init__("it changed while it was being read; run the same command again when nobody writes it")
