# SPDX-License-Identifier: Apache-2.0
"""Copies a folder of this node to the bucket: only files that are whole and have changed."""

from __future__ import annotations

import base64
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Tuple

from launcher.compatibility import md5_hash as md5_digest
from launcher.fence import Fence, FencedError
from launcher.printing import LinePrinter
from launcher.stores import NOT_TAKEN, ChangedError, Folder, StoreError
from launcher.walking import open_file

# The usual names of drafts, which their writers rename later.
DRAFTS = (".tmp", ".temp", ".part", ".partial", "~", ".trainyard-new")
_CHUNK = 1 << 20
# How many files that cannot be uploaded are named one by one. A script may make any number of them.
_MOST_NAMED = 20
# Why a file was not uploaded.
CHANGED = "it changed while it was uploaded"
NOT_UTF_8 = "its name is not UTF-8"
# The file was removed, or a link has replaced it or a folder above it.
_GONE = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR)
Stamp = Tuple[int, int]


@dataclass
class Sync:
    """Copies the files below `local` to `remote` in the bucket. Other nodes may write there too.

    With a `fence`, it puts and removes nothing once a newer start writes there.
    """

    local: Path
    folder: Folder
    remote: str
    say: LinePrinter
    fence: Fence | None = None
    # name -> the file's stamp when it was last put or fetched, and the etag of that object
    _known: dict[str, tuple[Stamp, str]] = field(default_factory=dict)
    _seen: dict[str, Stamp] = field(default_factory=dict)
    _doubtful: set[str] = field(default_factory=set)
    _put: set[str] = field(default_factory=set)
    _passed_over: set[str] = field(default_factory=set)

    def restore(self) -> int:
        """Downloads files that this node lacks, or has in another version. Returns their number."""
        fetched = 0
        prefix = f"{self.remote}/" if self.remote else ""
        for item in self.folder.list(prefix):
            name = item.name[len(prefix) :]
            if not name or name.endswith("/") or self._known.get(name, ((0, 0), ""))[1] == item.etag:
                continue
            path = (self.local / name).resolve()
            if self.local.resolve() not in path.parents:
                continue  # a name that leads out of the folder is not a checkpoint of ours
            path.parent.mkdir(parents=True, exist_ok=True)
            etag = self.folder.get_file(item.name, str(path))
            self._known[name] = (_stamp_of_file(path) or (0, 0), etag)
            fetched += 1
        return fetched

    def changed(self) -> int:
        """Uploads files that have changed and are complete: unchanged since the last look, not open for writing."""
        found = dict(self._files())
        ready = [
            name
            for name, stamp in found.items()
            if self._seen.get(name) == stamp and self._known.get(name, ((0, 0), ""))[0] != stamp
        ]
        self._seen = found
        if ready:
            busy = open_for_writing(self.local)
            ready = [name for name in ready if str(self.local / name) not in busy]
        gone = sorted(self._put - found.keys())
        if not ready and not gone:
            return 0
        with self._writing() as may:
            if not may:
                return 0
            self._remove(gone)
            return sum(self._upload(name, found[name]) for name in ready)

    def before_the_end(self) -> None:
        """Remembers the files that are open for writing now, because their writers are about to be killed."""
        prefix = len(str(self.local)) + 1
        self._doubtful |= {path[prefix:] for path in open_for_writing(self.local)}

    def everything(self, whole: bool) -> int:
        """Uploads all that has changed, once no process writes any more. Returns the number of files.

        `whole` False: the writers were killed, so a file that has changed since the last look may be partial.
        """
        found = dict(self._files())
        ready = [
            name
            for name, stamp in found.items()
            if self._known.get(name, ((0, 0), ""))[0] != stamp
            and name not in self._doubtful
            and (whole or self._seen.get(name) == stamp)
        ]
        count = 0
        if ready:
            with self._writing() as may:
                count = sum(self._upload(name, found[name]) for name in ready) if may else 0
        self._seen = found
        self._doubtful.clear()
        return count

    def _writing(self) -> AbstractContextManager[bool]:
        return nullcontext(True) if self.fence is None else self.fence.writing()

    def _files(self) -> Iterator[tuple[str, Stamp]]:
        for parent, folders, names in os.walk(self.local):
            folders.sort()
            for name in sorted(names):
                path = Path(parent) / name
                stamp = None if name.endswith(DRAFTS) or path.is_symlink() else _stamp_of_file(path)
                if stamp is not None:
                    yield str(path.relative_to(self.local)), stamp

    def _upload(self, name: str, stamp: Stamp) -> int:
        """Uploads a file, and returns 0 if that was not possible. A file that changed meanwhile is retried; the log
        names other files."""
        why = self.put(name, stamp)
        if why and why != CHANGED:
            self._pass_over(name, why)
        return 0 if why else 1

    def put(self, name: str, stamp: Stamp) -> str:
        """Uploads a file. Returns why that was not possible, so that the other files go on; empty if it was."""
        if self.fence is not None and not self.fence.may_write():
            return CHANGED
        try:
            etag = self._send(name, stamp)
        except FencedError:
            raise StoreError(
                0, f"the upload of {name} was stopped: this node did not reach the object store for too long"
            ) from None
        except ChangedError:
            return CHANGED
        except UnicodeEncodeError:
            return NOT_UTF_8
        except PermissionError as error:
            return str(error.strerror)
        except StoreError as error:
            if error.status != NOT_TAKEN:
                raise
            return str(error)
        if etag is None:
            return CHANGED
        self._known[name] = (stamp, etag)
        self._put.add(name)
        return ""

    def _send(self, name: str, stamp: Stamp) -> str | None:
        """Sends a file and returns the etag. None: it changed meanwhile, which the bucket notices by its digest."""
        try:
            opened = open_file(os.path.realpath(self.local), name)
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise
        with open(opened, "rb") as file:
            digest, left = md5_digest(), stamp[0]
            # Only up to the size that the file had at first, because it may grow faster than it is read.
            while left > 0:
                chunk = file.read(min(left, _CHUNK))
                if not chunk:
                    break
                digest.update(chunk)
                left -= len(chunk)
            if stamp_of_status(os.fstat(file.fileno())) != stamp:
                return None
            md5 = base64.b64encode(digest.digest()).decode()
            body = file if self.fence is None else self.fence.guarded(file)
            return self.folder.put_file(self._object(name), body, stamp[0], stamp[1] / 1e9, md5)

    def _pass_over(self, name: str, why: str) -> None:
        """Names a file that cannot be uploaded in the log, once."""
        if name in self._passed_over:
            return
        self._passed_over.add(name)
        if len(self._passed_over) <= _MOST_NAMED:
            self.say(f"{name!a} is not uploaded to the bucket: {why}")
        elif len(self._passed_over) == _MOST_NAMED + 1:
            self.say("more files are not uploaded to the bucket for reasons like these")

    def _object(self, name: str) -> str:
        return f"{self.remote}/{name}" if self.remote else name

    def _remove(self, gone: list[str]) -> None:
        """Removes objects from the bucket whose files the script has deleted. Scripts keep the last few checkpoints."""
        for name in gone:
            if self.fence is not None and not self.fence.may_write():
                return
            self.folder.remove(self._object(name))
            self._put.discard(name)
            self._known.pop(name, None)


def _stamp_of_file(path: Path) -> Stamp | None:
    """The stamp of a file; None if it has gone, or is not a regular file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return stamp_of_status(found) if stat.S_ISREG(found.st_mode) else None


def stamp_of_status(status: os.stat_result) -> Stamp:
    """Size and modification time, which change with the content of a file."""
    return status.st_size, status.st_mtime_ns


def open_for_writing(folder: Path) -> set[str]:
    """The files below a folder that are open for writing in a process that we may look at."""
    prefix, found = str(folder) + os.sep, set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            for number in os.listdir(f"/proc/{entry}/fd"):
                path = os.readlink(f"/proc/{entry}/fd/{number}")
                if path.startswith(prefix) and _is_open_for_writing(f"/proc/{entry}/fdinfo/{number}"):
                    found.add(path)
        except OSError:
            continue  # not ours, or gone
    return found


def _is_open_for_writing(fdinfo: str) -> bool:
    with open(fdinfo, encoding="ascii") as file:
        for line in file:
            if line.startswith("flags:"):
                return int(line.split()[1], 8) & (os.O_WRONLY | os.O_RDWR) != 0
    return False
