# SPDX-License-Identifier: Apache-2.0
"""Bodies of requests and answers, in steps that a slow line moves before its timeout."""

from __future__ import annotations

import io
from collections.abc import Iterable

from components.platform.checksums import BLOCK_BYTES, blocks
from components.platform.file_errors import ContentChangedError
from components.platform.files import Content, Sink


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
        block = next(blocks(content.file, content.start + self._place, step), b"")
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
    """Clients take an empty stream for one of unknown length."""
    return ContentStream(content) if content.size else b""


def drain(stream: Iterable[bytes], sink: Sink, length: int) -> None:
    """Gives the bytes of an answer to a sink. ConnectionError: fewer or more arrived than were asked for."""
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
