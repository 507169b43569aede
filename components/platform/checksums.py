# SPDX-License-Identifier: Apache-2.0
"""MD5 checksums as object stores state them: of a whole object, or of the checksums of its parts.

`q2M…==` is the digest of all bytes, in base64. `q2M…==-12` is the digest of the digests of twelve parts. All parts have
the same size but the last, and the checksum does not tell which.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Iterator

MEBIBYTE = 1 << 20
# One part unless the file needs more than MOST_PARTS of them.
PART_BYTES = 16 * MEBIBYTE
MOST_PARTS = 10_000
# Reading in larger steps is not faster.
BLOCK_BYTES = 256 * 1024
# What other clients upload in: by default, from streams, and by people's choice.
_USUAL_PARTS = tuple(size * MEBIBYTE for size in (128, 10, 16, 32, 64, 100, 50, 20, 256, 512, 1024))
_MOST_GUESSES = 4


def md5(content: bytes = b"") -> hashlib._Hash:
    """MD5 is what stores verify. It guards against accidents, not against people."""
    return hashlib.md5(content, usedforsecurity=False)


def as_text(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def of_parts(digests: Iterable[bytes]) -> str:
    """The checksum of an object that was uploaded in these parts."""
    each = list(digests)
    return f"{as_text(md5(b''.join(each)).digest())}-{len(each)}"


def part_bytes(size: int) -> int:
    """The size of the parts in which we upload a file of this size."""
    part = PART_BYTES
    while size > part * MOST_PARTS:
        part *= 2
    return part


def parts(size: int, part: int) -> list[tuple[int, int]]:
    """Start and length of each part. An empty file has none."""
    return [(start, min(part, size - start)) for start in range(0, size, part)]


def possible_parts(size: int, checksum: str, stated: int | None = None) -> list[int]:
    """The sizes of parts that this checksum may be of, the likeliest first. Empty: it is of the whole content."""
    _, dash, count = checksum.partition("-")
    if not dash or not count.isdecimal():
        return []
    guesses = [stated, part_bytes(size), *_USUAL_PARTS]
    if wanted := int(count):
        # The least whole number of mebibytes that gives so many parts: what a client may compute for itself.
        guesses.append(-(-size // wanted // MEBIBYTE) * MEBIBYTE)
    fit = (guess for guess in guesses if guess and len(range(0, size, guess)) == int(count))
    return list(dict.fromkeys(fit))[:_MOST_GUESSES]


def digest_of(file: int, start: int, length: int) -> bytes:
    """The digest of a slice of an open file. Shorter than it should be, it has another digest."""
    digest = md5()
    for block in blocks(file, start, length):
        digest.update(block)
    return digest.digest()


def blocks(file: int, start: int, length: int) -> Iterator[bytes]:
    end = start + length
    while start < end and (block := os.pread(file, min(BLOCK_BYTES, end - start), start)):
        yield block
        start += len(block)


def matches(file: int, size: int, checksum: str, stated: int | None = None) -> bool:
    """Whether the open file has this checksum. `stated`: the size of the parts, where somebody wrote it down."""
    possible = possible_parts(size, checksum, stated)
    if not possible:
        return as_text(digest_of(file, 0, size)) == checksum
    return any(
        of_parts(digest_of(file, start, length) for start, length in parts(size, part)) == checksum for part in possible
    )
