# SPDX-License-Identifier: Apache-2.0
"""Errors that only the cloud can reveal, such as a missing bucket. They are found before anything is made."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.checks.registry import Wrong


class RefusedError(Exception):
    """The platform refuses to make a stack, because its file names a missing thing. The program adds file and line."""

    def __init__(self, wrongs: Sequence[Wrong]) -> None:
        super().__init__("; ".join(wrong.message for wrong in wrongs))
        self.wrongs = tuple(wrongs)
