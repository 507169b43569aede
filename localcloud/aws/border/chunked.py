# SPDX-License-Identifier: Apache-2.0
"""Decodes bodies of S3 that come in chunks with trailing checksums (`aws-chunked`), so that the rest of the program
gets whole bodies. The trailers become headers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from localcloud.aws.errors import Reason, RefusalError
from localcloud.aws.sigv4 import STREAMED_UNSIGNED

_ENCODING = "content-encoding"
_SIZE = re.compile(rb"[0-9a-fA-F]{1,8}")
_CHECKSUM = re.compile(r"x-amz-checksum-[a-z0-9]+", re.ASCII)
_LONGEST_LINE = 1024


def decoded(headers: Mapping[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    """The headers and the body without the encoding."""
    found = dict(headers)
    encodings = [one.strip() for one in found.pop(_ENCODING, "").split(",")]
    if rest := ", ".join(one for one in encodings if one not in ("", "aws-chunked")):
        found[_ENCODING] = rest
    if headers.get("x-amz-content-sha256") != STREAMED_UNSIGNED:
        return found, body
    pieces, end = _pieces(body)
    content = b"".join(pieces)
    if headers.get("x-amz-decoded-content-length") != str(len(content)):
        raise RefusalError(Reason.MALFORMED, "The body has not the length that was said", "IncompleteBody")
    named = headers.get("x-amz-trailer", "").lower()
    for name, value in _trailers(body, end):
        if name != named or not _CHECKSUM.fullmatch(name) or name in found:
            raise RefusalError(Reason.MALFORMED, "The trailer of the body is not the one that was said")
        found[name] = value
    return found, content


def _pieces(body: bytes) -> tuple[list[memoryview], int]:
    """The chunks, and the position of the trailers."""
    whole, at = memoryview(body), 0
    pieces: list[memoryview] = []
    while True:
        line = body.find(b"\r\n", at, at + _LONGEST_LINE)
        size = _SIZE.fullmatch(body[at : max(line, at)])
        if size is None:
            raise _broken()
        at, length = line + 2, int(size[0], 16)
        if not length:
            return pieces, at
        if body[at + length : at + length + 2] != b"\r\n":
            raise _broken()
        pieces.append(whole[at : at + length])
        at += length + 2


def _trailers(body: bytes, at: int) -> Iterator[tuple[str, str]]:
    if len(body) - at > _LONGEST_LINE:
        raise _broken()
    try:
        lines = body[at:].decode("ascii").split("\r\n")
    except UnicodeDecodeError:
        raise _broken() from None
    for line in filter(None, lines):
        name, colon, value = line.partition(":")
        if not colon:
            raise _broken()
        yield name.lower(), value.strip()


def _broken() -> RefusalError:
    return RefusalError(Reason.MALFORMED, "The body is not in pieces as aws-chunked has them", "IncompleteBody")
