# SPDX-License-Identifier: Apache-2.0
"""The folder that files are downloaded into. Nothing is written outside of it, and no link in it is followed.

Each folder on a path is opened relative to its parent's descriptor. So a link that somebody adds meanwhile does not
lead out of the folder.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.platform.files import FileProblemError, StoredObject, TransferError
from components.platform.streams import WORKPLACE, checksum_text, digest_of, new_md5

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Errors that concern the disk and not one file: nothing more can be written.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class TargetFolder:
    """Descriptors: `root` of the folder, `work` of the folder below it that holds unfinished files."""

    path: Path
    root: int
    work: int

    def lookup(self, steps: Sequence[str]) -> int | None:
        """The open file at this path, or None. FileProblemError: there is something else, or a link on the way."""
        try:
            with self._parent(steps, make=False) as folder:
                file = os.open(steps[-1], os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _path_problem(error) from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise FileProblemError("its path exists, but is not a file")
        return file

    def place(self, draft: str, steps: Sequence[str], replace: bool) -> None:
        """Moves a complete file to its name. Without `replace`, a file that was made there in the meantime stays."""
        try:
            with self._parent(steps, make=True) as folder:
                if replace or not _link_draft(draft, steps[-1], self.work, folder):
                    os.rename(draft, steps[-1], src_dir_fd=self.work, dst_dir_fd=folder)
        except FileExistsError:
            raise FileProblemError("a file of this name was made there in the meantime") from None
        except OSError as error:
            raise_if_full(error, self.path)
            raise _path_problem(error) from None

    @contextmanager
    def _parent(self, steps: Sequence[str], make: bool) -> Iterator[int]:
        folder = os.dup(self.root)
        try:
            for step in steps[:-1]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(step, dir_fd=folder)
                deeper = os.open(step, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = deeper
            yield folder
        finally:
            os.close(folder)


def _link_draft(draft: str, name: str, work: int, folder: int) -> bool:
    """Links the draft to its name unless that exists. False if the file system has no hard links."""
    try:
        os.link(draft, name, src_dir_fd=work, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.EXDEV):
            return False
        raise
    os.unlink(draft, dir_fd=work)
    return True


@contextmanager
def open_target(path: Path) -> Iterator[TargetFolder]:
    """Opens the folder, and makes it if there is none. Only one process at a time downloads into it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise TransferError(f"cannot fetch into {path}: {_folder_problem(error)}") from None
    try:
        with suppress(FileExistsError):
            os.mkdir(WORKPLACE, 0o700, dir_fd=root)
        work = os.open(WORKPLACE, _FOLDER, dir_fd=root)
    except OSError as error:
        raise TransferError(f"cannot write into {path}: {WORKPLACE}: {_folder_problem(error)}") from None
    try:
        fcntl.flock(work, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(work)
        raise TransferError(f"another process downloads into {path}; wait until it has ended") from None
    try:
        yield TargetFolder(path, root, work)
    finally:
        # While it holds unfinished files, it stays.
        with suppress(OSError):
            os.rmdir(WORKPLACE, dir_fd=root)
    # Not closed after an error: threads may still write to these descriptors, and other files could get their numbers.
    os.close(work)
    os.close(root)


def raise_if_full(error: OSError, path: Path) -> None:
    """A full disk ends the whole transfer."""
    if error.errno in _FULL:
        raise TransferError(
            f"cannot write into {path}: {error.strerror}. Finished parts are kept: make room, and run the same command "
            "again"
        ) from None


def _path_problem(error: OSError) -> FileProblemError:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return FileProblemError("its path has a link, or a file in place of a folder; links are not followed")
    if error.errno == errno.EISDIR:
        return FileProblemError("there is a folder of this name")
    return FileProblemError(f"cannot be written: {error.strerror}")


def _folder_problem(error: OSError) -> str:
    if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.ELOOP):
        return "it is a link, or not a folder"
    return str(error.strerror)


@dataclass
class Draft:
    """An open draft: an unfinished file. `name` is its name in the work folder."""

    target: TargetFolder
    name: str
    file: int
    journal: int | None
    digests: dict[int, bytes] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def sink(self, start: int, progress: Any) -> DraftSink:
        return DraftSink(self, start, progress)

    def arrived(self, number: int, digest: bytes) -> None:
        """Notes in the journal that a part is complete. One short write keeps the journal's lines whole."""
        with self._lock:
            self.digests[number] = digest
            if self.journal is not None:
                os.write(self.journal, json.dumps([number, checksum_text(digest)]).encode() + b"\n")

    def forget(self) -> None:
        for name in (self.name, _journal_of(self.name)):
            with suppress(OSError):
                os.unlink(name, dir_fd=self.target.work)


@dataclass
class DraftSink:
    """Writes the bytes of one part at their offset. `progress` gets the number of bytes, negative when a retry starts
    the part again."""

    draft: Draft
    start: int
    progress: Any
    size: int = 0
    _digest: Any = field(default_factory=new_md5)

    def restart(self) -> None:
        if self.size:
            self.progress(-self.size)
        self.size, self._digest = 0, new_md5()

    def take(self, block: bytes) -> None:
        self._digest.update(block)
        view, place = memoryview(block), self.start + self.size
        try:
            while view:
                written = os.pwrite(self.draft.file, view, place)
                view, place = view[written:], place + written
        except OSError as error:
            raise_if_full(error, self.draft.target.path)
            raise FileProblemError(f"cannot be written: {error.strerror}") from None
        self.size += len(block)
        self.progress(len(block))

    @property
    def digest(self) -> bytes:
        return bytes(self._digest.digest())


@contextmanager
def open_draft(
    target: TargetFolder, item: StoredObject, ranges: dict[int, tuple[int, int]] | None = None
) -> Iterator[Draft]:
    """The draft of an object. With `ranges` (the parts by number) it has a journal, and resumes an earlier process."""
    identity = f"{item.name}\n{item.etag}\n{sorted((ranges or {}).values())[:1]}"
    name = hashlib.sha256(identity.encode()).hexdigest()[:40]
    try:
        file = _open_work_file(target, name)
        journal = _open_work_file(target, _journal_of(name), os.O_APPEND) if ranges else None
        # It fails at once if the disk has no room for the whole file.
        room = os.fstatvfs(file)
        missing = item.size - os.fstat(file).st_blocks * 512
        if missing > room.f_bavail * room.f_frsize:
            raise_if_full(
                OSError(28, f"{missing} bytes are needed, {room.f_bavail * room.f_frsize} are free"), target.path
            )
        os.ftruncate(file, item.size)
    except OSError as error:
        raise_if_full(error, target.path)
        raise FileProblemError(f"cannot be written: {error.strerror}") from None
    draft = Draft(target, name, file, journal)
    if ranges and journal is not None:
        draft.digests = _whole_parts(file, journal, ranges)
    try:
        yield draft
    except FileProblemError:
        _close_draft(draft)
        raise
    # Not closed after other errors: threads may still write to these descriptors, and other files could get their
    # numbers.
    _close_draft(draft)


def _close_draft(draft: Draft) -> None:
    """Closes a draft. One without a journal cannot be resumed, and is removed."""
    if draft.journal is None:
        draft.forget()
    else:
        os.close(draft.journal)
    os.close(draft.file)


def _open_work_file(target: TargetFolder, name: str, more: int = 0) -> int:
    """Opens a file of the work folder. Removes a soft or hard link first, so that nothing is written through it."""
    with suppress(FileNotFoundError):
        status = os.lstat(name, dir_fd=target.work)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            os.unlink(name, dir_fd=target.work)
    return os.open(name, _OPEN | more, 0o666, dir_fd=target.work)


def _whole_parts(file: int, journal: int, ranges: dict[int, tuple[int, int]]) -> dict[int, bytes]:
    size = os.fstat(journal).st_size
    whole: dict[int, bytes] = {}
    for line in os.pread(journal, size, 0).splitlines():
        with suppress(ValueError, TypeError):
            number, stated = json.loads(line)
            if number in ranges and checksum_text(digest := digest_of(file, *ranges[number])) == stated:
                whole[number] = digest
    return whole


def _journal_of(name: str) -> str:
    return f"{name}.parts"
