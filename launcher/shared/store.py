# SPDX-License-Identifier: Apache-2.0
"""`file:///path`: a store whose objects are files below a folder. Each is written as a draft and then moved, so that
nobody sees a partial one.

The time of an object is its file's ctime, by the file system's clock. The mtime stays that of the script's file.
"""

from __future__ import annotations

import base64
import errno
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from launcher.compatibility import md5_hash as md5_digest
from launcher.errors import LaunchError
from launcher.printing import LinePrinter
from launcher.stores import EXISTS, NOT_TAKEN, ChangedError, Stored, StoreError

_DRAFT = ".trainyard-draft-"
_CHUNK = 1 << 20
# Permanent errors, as HTTP statuses. All others may pass.
_STATUSES = {
    errno.EACCES: 403, errno.EPERM: 403, errno.EROFS: 403, errno.EEXIST: EXISTS, errno.ENAMETOOLONG: NOT_TAKEN,
    errno.EISDIR: NOT_TAKEN, errno.ENOTDIR: NOT_TAKEN,
}  # fmt: skip


class Store:
    """Folders of this machine. They need no identity: the file system's permissions decide who may write."""

    def __init__(self, environment: Mapping[str, str], say: LinePrinter) -> None:
        pass

    def folder(self, uri: str) -> SharedFolder:
        """Opens a folder, which need not exist yet."""
        return SharedFolder(uri)


class SharedFolder:
    """Names are paths below the folder."""

    host = ""
    trouble = ""

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        if parts.netloc or not parts.path.startswith("/") or parts.query or parts.fragment:
            raise LaunchError(f"`{uri}` is not a folder of this machine: write file:///path")
        self.uri = uri
        self._root = Path(unquote(parts.path))

    def give_up_when(self, stopped: Callable[[], bool]) -> None:
        """Does nothing: this store has no retries."""

    def report_to(self, say: LinePrinter) -> None:
        """Does nothing: this store answers or fails."""

    def close(self) -> None:
        """Does nothing: this store keeps nothing open."""

    def list(self, below: str) -> list[Stored]:
        """All files whose paths begin with `below`, in order."""
        with _store_errors():
            return sorted(self._files(below), key=lambda item: item.name)

    def _files(self, below: str) -> Iterator[Stored]:
        for place, _, names in os.walk(self._root / below.rpartition("/")[0]):
            for name in names:
                path = Path(place, name)
                found = str(path.relative_to(self._root))
                if found.startswith(below) and not name.startswith(_DRAFT):
                    # Another node may remove it meanwhile.
                    with suppress(FileNotFoundError):
                        status = path.stat()
                        seconds, rest = divmod(status.st_ctime_ns, 10**9)
                        changed = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z"
                        yield Stored(found, changed, status.st_size, _etag_of_file(status))

    def put(self, name: str, content: bytes, new: bool = False) -> str:
        """A small object."""
        with _store_errors(), self._draft(name) as (draft, target):
            draft.write_bytes(content)
            return _move_draft(draft, target, new)

    def put_file(self, name: str, file: IO[bytes], size: int, mtime: float, md5: str) -> str:
        """Copies a file. ChangedError if size or digest have changed."""
        digest = md5_digest()
        with _store_errors(), self._draft(name) as (draft, target):
            file.seek(0)
            with open(draft, "wb") as copy:
                for chunk in iter(lambda: file.read(_CHUNK), b""):
                    digest.update(chunk)
                    copy.write(chunk)
            if base64.b64encode(digest.digest()).decode() != md5:
                raise ChangedError(NOT_TAKEN, f"{name} changed while it was being put")
            os.utime(draft, (mtime, mtime))
            return _move_draft(draft, target)

    def get(self, name: str) -> bytes | None:
        """A small object."""
        with _store_errors():
            try:
                return self._path(name).read_bytes()
            except FileNotFoundError:
                return None

    def get_file(self, name: str, path: str) -> str:
        """Writes a copy, and moves it to `path` when it is whole."""
        draft = f"{path}.trainyard-new"
        with _store_errors():
            try:
                with open(self._path(name), "rb") as source, open(draft, "wb") as copy:
                    shutil.copyfileobj(source, copy, _CHUNK)
                    status = os.fstat(source.fileno())
                os.utime(draft, ns=(status.st_mtime_ns, status.st_mtime_ns))
                os.replace(draft, path)
            finally:
                with suppress(FileNotFoundError):
                    os.remove(draft)
        return _etag_of_file(status)

    def remove(self, name: str) -> None:
        """Removes a file. Its folder stays, because another node may be about to write there."""
        with _store_errors(), suppress(FileNotFoundError):
            self._path(name).unlink()

    def _path(self, name: str) -> Path:
        if not name or any(part in ("", ".", "..") for part in name.split("/")):
            raise StoreError(NOT_TAKEN, f"{name!a} is not a name that a file can have here")
        return self._root / name

    @contextmanager
    def _draft(self, name: str) -> Iterator[tuple[Path, Path]]:
        """The paths of an object's draft and of the object. Removes a draft that was not moved."""
        target = self._path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Random, because containers of one machine may share its name and the same process id.
        draft = target.parent / f"{_DRAFT}{secrets.token_hex(8)}"
        try:
            yield draft, target
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()


def _move_draft(draft: Path, target: Path, new: bool = False) -> str:
    """Moves a draft and returns its etag, even if another node has replaced the file since."""
    with open(draft, "rb") as held:
        if new:
            os.link(draft, target)
            draft.unlink()
        else:
            draft.replace(target)
        return _etag_of_file(os.fstat(held.fileno()))


def _etag_of_file(status: os.stat_result) -> str:
    return f"{status.st_ino:x}-{status.st_ctime_ns:x}-{status.st_size:x}"


@contextmanager
def _store_errors() -> Iterator[None]:
    """Turns OSError into StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(_STATUSES.get(error.errno or 0, 0), str(error)) from None
