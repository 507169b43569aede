# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a transfer: with all of it, or with one file while the others go on."""

from __future__ import annotations


class TransferError(Exception):
    """Nothing more can be moved. The text is for the person who waits."""


class FileProblemError(Exception):
    """One file cannot be moved. The others can."""


class ObjectChangedError(FileProblemError):
    """Somebody else wrote the object after we looked at it."""

    def __init__(self) -> None:
        super().__init__("somebody else changed it in the bucket meanwhile; run the same command again")


class ContentChangedError(FileProblemError):
    """The file's bytes are not those of its checksum any more."""

    def __init__(self) -> None:
        super().__init__("it changed while it was being read; run the same command again when nobody writes it")
