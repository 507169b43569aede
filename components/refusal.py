# SPDX-License-Identifier: Apache-2.0
"""What only the place itself can tell is wrong with a stack, found before anything is made there."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.checks.registry import Wrong


class RefusedError(Exception):
    """A platform will not make a stack: what its file names is not there. The program adds file and line."""

    def __init__(self, wrongs: Sequence[Wrong]) -> None:
        super().__init__("; ".join(wrong.message for wrong in wrongs))
        self.wrongs = tuple(wrongs)
