# SPDX-License-Identifier: Apache-2.0
"""The exception with which a Python program ended, from its last lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainyard.why.stack_groups import CodePlace
from trainyard.why.symptoms import bound_lines

_BEGIN = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s{2,8}File "([^"]{1,500})", line (\d{1,9})(?:, in (\S{1,200}))?')
# Code that is not the team's: Python's own, installed packages, launchers of frameworks.
_FOREIGN = re.compile(r"site-packages|dist-packages|/lib/python\d|/lib64/python\d|^<|/torchrun$|/launcher/")
# Code that speaks with other ranks: an exception in there may have its cause in one of them.
_OF_PEERS = re.compile(
    r"(?:site|dist)-packages/(?:torch/(?:distributed|nn/parallel|autograd)|horovod|ray|distributed|dask|tensorflow|"
    r"lightning|pytorch_lightning|accelerate|deepspeed)/"
)
_LONGEST_WORDS = 300


@dataclass(frozen=True, slots=True)
class RaisedException:
    """`words`: its type and text. `where`: the team's innermost frame. `file`: where it was raised."""

    words: str
    where: CodePlace | None
    file: str = ""

    @property
    def among_peers(self) -> bool:
        """Whether it was raised in code that speaks with other ranks."""
        return _OF_PEERS.search(self.file) is not None

    @property
    def in_other_package(self) -> bool:
        """Whether it was raised in a package that has nothing to do with other ranks, such as a client of a service."""
        return not self.among_peers and re.search("(?:site|dist)-packages/", self.file) is not None


def find_exception(lines: Sequence[str]) -> RaisedException | None:
    """The last exception that has a frame of the team's code, or else the last one."""
    bounded = list(bound_lines(lines))
    begins = [number for number, line in enumerate(bounded) if line.strip() == _BEGIN]
    found = [raised for begin in reversed(begins) if (raised := _read_traceback(bounded[begin + 1 :]))]
    return next((raised for raised in found if raised.where is not None), found[0] if found else None)


def _read_traceback(lines: Sequence[str]) -> RaisedException | None:
    where, last = None, ""
    for line in lines:
        if frame := _FRAME.match(line):
            last = frame[1]
            if not _FOREIGN.search(last):
                where = CodePlace(frame[3] or "", last, int(frame[2]))
        elif line and not line[0].isspace():
            if line.strip() == _BEGIN or not last:
                return None
            return RaisedException(line.strip()[:_LONGEST_WORDS], where, last)
    return None
