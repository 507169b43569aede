# SPDX-License-Identifier: Apache-2.0
"""The folder that files are fetched into. Nothing is written outside of it, and no link in it is followed.

Every step below the folder is opened by its descriptor, so a link that somebody puts there meanwhile is no way out.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from components.platform.file_errors import FileProblemError, TransferError
from components.platform.object_names import WORKPLACE

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Nothing more can be written: not a matter of one file.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})


@dataclass(frozen=True)
class Target:
    """`root` is the folder, `work` the one below it where files wait until they are whole."""

    path: Path
    root: int
    work: int

    def lookup(self, steps: Sequence[str]) -> int | None:
        """The open file that lies there. None: nothing does. FileProblemError: it is no file, or lies behind a link."""
        try:
            with self._parent(steps, make=False) as folder:
                file = os.open(steps[-1], os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _in_the_way(error) from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise FileProblemError("something lies there that is no file")
        return file

    def place(self, draft: str, steps: Sequence[str], replace: bool) -> None:
        """Moves a whole file to its name. Unless it may `replace`, a file that came there meanwhile stays."""
        try:
            with self._parent(steps, make=True) as folder:
                if replace or not _link(draft, steps[-1], self.work, folder):
                    os.rename(draft, steps[-1], src_dir_fd=self.work, dst_dir_fd=folder)
        except FileExistsError:
            raise FileProblemError("a file of this name came there meanwhile") from None
        except OSError as error:
            raise_if_full(error, self.path)
            raise _in_the_way(error) from None

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


def _link(draft: str, name: str, work: int, folder: int) -> bool:
    """Gives the draft its name unless something has it already; False where the file system has no hard links."""
    try:
        os.link(draft, name, src_dir_fd=work, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.EXDEV):
            return False
        raise
    os.unlink(draft, dir_fd=work)
    return True


@contextmanager
def open_target(path: Path) -> Iterator[Target]:
    """Makes the folder if there is none. Only one process at a time fetches into it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise TransferError(f"cannot fetch into {path}: {_words(error)}") from None
    work = _workplace(path, root)
    try:
        yield Target(path, root, work)
    finally:
        # It stays while unfinished files are in it.
        with suppress(OSError):
            os.rmdir(WORKPLACE, dir_fd=root)
    # Not after an error: threads may still write by these descriptors, whose numbers would be given to other files.
    os.close(work)
    os.close(root)


def _workplace(path: Path, root: int) -> int:
    try:
        with suppress(FileExistsError):
            os.mkdir(WORKPLACE, 0o700, dir_fd=root)
        work = os.open(WORKPLACE, _FOLDER, dir_fd=root)
    except OSError as error:
        raise TransferError(f"cannot write into {path}: {WORKPLACE}: {_words(error)}") from None
    try:
        fcntl.flock(work, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(work)
        raise TransferError(f"another process is fetching into {path}; wait until it has ended") from None
    return work


def raise_if_full(error: OSError, path: Path) -> None:
    """A full disk ends the whole transfer."""
    if error.errno in _FULL:
        raise TransferError(
            f"cannot write into {path}: {error.strerror}. What has arrived stays: make room, and run the same command "
            "again"
        ) from None


def _in_the_way(error: OSError) -> FileProblemError:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return FileProblemError("a link, or a file in place of a folder, lies in its way; links are not followed")
    if error.errno == errno.EISDIR:
        return FileProblemError("a folder of this name lies there")
    return FileProblemError(f"cannot be written: {error.strerror}")


def _words(error: OSError) -> str:
    if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.ELOOP):
        return "it is a link, or no folder"
    return str(error.strerror)
