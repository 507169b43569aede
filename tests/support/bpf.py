# SPDX-License-Identifier: Apache-2.0
"""Interprets filters of system calls as the kernel does: the part of classic BPF that our filters use."""

from __future__ import annotations

import struct
from collections.abc import Sequence

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_WORD = 0xFFFFFFFF


def steps_of(program: bytes) -> Sequence[tuple[int, int, int, int]]:
    """(operation, steps to skip if true, steps to skip otherwise, value) of each step."""
    return list(struct.iter_unpack("=HBBI", program))


def answer(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """The filter's result for a system call on a little-endian machine."""
    full = (*arguments, *[0] * (6 - len(arguments)))
    call = struct.pack("<IIQ6Q", number & _WORD, architecture, 0, *(each & (1 << 64) - 1 for each in full))
    steps, position, loaded = steps_of(program), 0, 0
    while True:
        operation, skip, otherwise, value = steps[position]
        position += 1
        if operation == _RETURN:
            return value
        if operation == _LOAD:
            (loaded,) = struct.unpack_from("<I", call, value)
        else:
            true = {_EQUAL: loaded == value, _AT_LEAST: loaded >= value}[operation]
            position += skip if true else otherwise
