# SPDX-License-Identifier: Apache-2.0
"""Errors that end a node's part. Their texts are for people."""

from __future__ import annotations


class LaunchError(Exception):
    """The node cannot start; the text says why and what to do. A retry would fail in the same way."""


class MissingError(Exception):
    """A timeout: something did not arrive or answer. The text says what, and what to do. A retry may help."""


class PeerFailedError(Exception):
    """Another node failed for good before this one could start. `code` None: it was lost."""

    def __init__(self, rank: int, code: int | None, text: str) -> None:
        super().__init__(text)
        self.rank = rank
        self.code = code
