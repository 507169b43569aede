# SPDX-License-Identifier: Apache-2.0
"""Helpers for transfers: checksums by parts, bodies of requests and responses, and names that are safe everywhere."""

from __future__ import annotations

import base64
import hashlib
import io
import os
from collections.abc import Iterable, Iterator

from components.platform.files import Content, ContentChangedError, Sink

MEBIBYTE = 1 << 20
# The size of a part, unless the file would need more than MOST_PARTS.
PART_BYTES = 16 * MEBIBYTE
MOST_PARTS = 10_000
# Reading in larger steps is not faster.
BLOCK_BYTES = 256 * 1024
# The folder for unfinished downloads, below the target folder.
WORKPLACE = ".trainyard-transfers"
_LONGEST_PART = 255
_LONGEST_PATH = 4000
# Most stores take no longer name.
LONGEST_NAME = 1024


# Part sizes of other clients: defaults, sizes for streams, and common choices.
_USUAL_PARTS = tuple(size * MEBIBYTE for size in (128, 10, 16, 32, 64, 100, 50, 20, 256, 512, 1024))
_MOST_GUESSES = 4


def new_md5(content: bytes = b"") -> hashlib._Hash:
    """MD5, because stores verify that. It detects accidents, not attacks."""
    return hashlib.md5(content, usedforsecurity=False)


def checksum_text(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def checksum_of_parts(digests: Iterable[bytes]) -> str:
    """The checksum of an object that was uploaded in these parts."""
    each = list(digests)
    return f"{checksum_text(new_md5(b''.join(each)).digest())}-{len(each)}"


def part_bytes(size: int) -> int:
    """The size of the parts in which we upload a file of this size."""
    part = PART_BYTES
    while size > part * MOST_PARTS:
        part *= 2
    return part


def part_ranges(size: int, part: int) -> list[tuple[int, int]]:
    """Start and length of each part. An empty file has none."""
    return [(start, min(part, size - start)) for start in range(0, size, part)]


def possible_parts(size: int, checksum: str, stated: int | None = None) -> list[int]:
    """The part sizes from which this checksum may be computed, the likeliest first. Empty if it is of the whole
    object."""
    _, dash, count = checksum.partition("-")
    if not dash or not count.isdecimal():
        return []
    guesses = [stated, part_bytes(size), *_USUAL_PARTS]
    if wanted := int(count):
        # Some clients compute the part size: the smallest whole number of MiB that gives this number of parts.
        guesses.append(-(-size // wanted // MEBIBYTE) * MEBIBYTE)
    fit = (guess for guess in guesses if guess and len(range(0, size, guess)) == int(count))
    return list(dict.fromkeys(fit))[:_MOST_GUESSES]


def digest_of(file: int, start: int, length: int) -> bytes:
    """The digest of a slice of an open file. If the file has become shorter, the digest differs."""
    digest = new_md5()
    for block in read_blocks(file, start, length):
        digest.update(block)
    return digest.digest()


def read_blocks(file: int, start: int, length: int) -> Iterator[bytes]:
    end = start + length
    while start < end and (block := os.pread(file, min(BLOCK_BYTES, end - start), start)):
        yield block
        start += len(block)


def matches_checksum(file: int, size: int, checksum: str, stated: int | None = None) -> bool:
    """Whether the open file has this checksum. `stated`: the part size, if the uploading client recorded it."""
    possible = possible_parts(size, checksum, stated)
    if not possible:
        return checksum_text(digest_of(file, 0, size)) == checksum
    return any(
        checksum_of_parts(digest_of(file, start, length) for start, length in part_ranges(size, part)) == checksum
        for part in possible
    )


class ContentStream(io.RawIOBase):
    """A slice of a file as the body of a request."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._place = 0

    def __len__(self) -> int:
        return self._content.size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = self._content
        step = min(BLOCK_BYTES, content.size - self._place)
        block = next(read_blocks(content.file, content.start + self._place, step), b"")
        if step and len(block) < step:
            raise ContentChangedError
        self._place += len(block)
        return block

    def tell(self) -> int:
        return self._place

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._content.size}[whence]
        self._place = start + place
        return self._place


def body_of(content: Content) -> ContentStream | bytes:
    """The body of a request. Empty content is bytes, because clients send an empty stream as one of unknown length."""
    return ContentStream(content) if content.size else b""


def drain_into_sink(stream: Iterable[bytes], sink: Sink, length: int) -> None:
    """Gives the bytes of a response to a sink. Raises ConnectionError if there are fewer or more than requested."""
    arrived = 0
    try:
        for block in stream:
            arrived += len(block)
            sink.take(block)
    except Exception as error:
        if {base.__module__.split(".")[0] for base in type(error).__mro__} & {"urllib3", "botocore"}:
            raise ConnectionError(str(error)) from error
        raise
    if arrived != length:
        raise ConnectionError(f"{arrived} of {length} bytes arrived")


def local_path(name: str) -> tuple[tuple[str, ...], str]:
    """The parts of a relative path for an object's name, or the reason why it has none.

    Every part is an ordinary file name on every system: never `..`, never absolute.
    """
    steps = tuple(name.split("/"))
    why = next((why for why in map(_reason_against_part, steps) if why), "")
    if not why and steps[0] == WORKPLACE:
        why = f"`{WORKPLACE}` is the folder of unfinished downloads"
    if not why and len(os.fsencode(name)) > _LONGEST_PATH:
        why = "its path is too long for this system"
    return ((), why) if why else (steps, "")


def _reason_against_part(step: str) -> str:
    if step in ("", ".", ".."):
        return "its name has an empty part, or `.` or `..`"
    if "\\" in step or not step.isprintable():
        return "its name has a backslash, or an invisible character"
    try:
        return "a part of its name is too long for this system" if len(step.encode()) > _LONGEST_PART else ""
    except UnicodeEncodeError:
        return "its name is not valid UTF-8"


def object_name(prefix: str, path: str) -> tuple[str, str]:
    """The object name of a file below `prefix`, or the reason why it has none."""
    name = f"{prefix}/{path}" if prefix else path
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        return "", "its name is not valid UTF-8, as names in a bucket have to be"
    if length > LONGEST_NAME:
        return "", f"its name in the bucket would have {length} bytes; {LONGEST_NAME} are allowed"
    # An object that could not be downloaded again is not uploaded.
    why = local_path(name)[1]
    return ("", why) if why else (name, "")
