# SPDX-License-Identifier: Apache-2.0
"""Why a node cannot go on, in words for a person."""

from __future__ import annotations


class LaunchError(Exception):
    """The node cannot start; the text says why and what to do. No retry would mend it."""


class MissingError(Exception):
    """Something that should have come did not in time; the text says what and what to do. A retry may mend it."""


class PeerFailedError(Exception):
    """Another node failed for good before this one could start. `code` None: it was lost."""

    def __init__(self, rank: int, code: int | None, text: str) -> None:
        super().__init__(text)
        self.rank = rank
        self.code = code
