# SPDX-License-Identifier: Apache-2.0
"""The files to upload: all below a folder, or one file. Links are reported, never followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from components.platform.files import ContentChangedError, FileProblemError, TransferError
from schemas.model import Stack
from trainyard.files.workers import TransferReport


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to upload. `path` is relative to the folder, with slashes."""

    path: str
    where: Path
    size: int


@dataclass(frozen=True)
class OpenedFile:
    """A file that is being read, and its size and times when it was opened."""

    file: int
    size: int
    _stamp: tuple[int, int, int]

    def require_unchanged(self) -> None:
        if _source_stamp(os.fstat(self.file)) != self._stamp:
            raise ContentChangedError

    def __enter__(self) -> OpenedFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error that ends the transfer, threads may still read from this descriptor. Closing it would let
        # another file get its number.
        if kind is None or issubclass(kind, FileProblemError):
            os.close(self.file)


def source_files(source: Path, report: TransferReport) -> Iterator[SourceFile]:
    """Every file of the folder, hidden ones too, in order; or the one file. Anything else becomes a problem of
    `report`."""
    try:
        status = source.stat()
    except OSError as error:
        raise TransferError(f"{source}: {error.strerror}") from None
    if stat.S_ISREG(status.st_mode):
        yield SourceFile(source.name, source, status.st_size)
    elif stat.S_ISDIR(status.st_mode):
        yield from _files_below(source, "", report)
    else:
        raise TransferError(f"{source} is neither a file nor a folder")


def _files_below(folder: Path, prefix: str, report: TransferReport) -> Iterator[SourceFile]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        report.problem(prefix or str(folder), f"cannot be read: {error.strerror}")
        return
    for entry in entries:
        path = f"{prefix}{entry.name}"
        if entry.is_symlink():
            report.problem(path, "is a link, and links are not followed; put what it points to by its own name")
        elif entry.is_dir(follow_symlinks=False):
            yield from _files_below(Path(entry.path), f"{path}/", report)
        elif entry.is_file(follow_symlinks=False):
            yield SourceFile(path, Path(entry.path), entry.stat(follow_symlinks=False).st_size)
        else:
            report.problem(path, "is neither a file nor a folder")


def open_source(source: SourceFile) -> OpenedFile:
    """Opens a listed file. If it has become a link since, that is not followed; if a pipe, the open does not block."""
    try:
        # A file that the caller named may be a link. Only links that were found in a folder are not followed.
        may_be_link = source.path == source.where.name and source.where.is_symlink()
        follow_flag = 0 if may_be_link else os.O_NOFOLLOW
        file = os.open(source.where, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | follow_flag)
    except OSError as error:
        raise FileProblemError(f"cannot be read: {error.strerror}") from None
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        os.close(file)
        raise FileProblemError("is neither a file nor a folder")
    return OpenedFile(file, status.st_size, _source_stamp(status))


def _source_stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ino


def stack_bucket_name(file: Path, stack: Stack) -> str:
    """The name of the stack's bucket. TransferError if it belongs to another stack whose file is not in the folder."""
    owners = {}
    if stack.answer("bucket") == "taken":
        from schemas.across_stacks import find_neighbours
        from schemas.judge import judge_file

        # The stacks of this folder that the file's stack uses, directly or through others.
        neighbours = find_neighbours([file], [judge_file(file)])
        owners = {neighbour.stack.name: neighbour.stack for neighbour in neighbours if neighbour.stack}
    seen = {stack.name}
    while stack.answer("bucket") == "taken" and stack.uses is not None:
        name = stack.uses.stack.rpartition("/")[2]
        if name not in owners or name in seen:
            raise TransferError(
                f"the bucket belongs to the stack {stack.uses.stack}, whose file is not in the folder of {file}\n"
                f'Name it: --bucket "$(pulumi stack output bucket -s {stack.uses.stack})"'
            )
        seen.add(name)
        stack = owners[name]
    return stack.bucket_name
