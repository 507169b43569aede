# SPDX-License-Identifier: Apache-2.0
"""Unpacks the archive of a job's code inside the node, as its user and under its limits. Then starts the command.

An archive may be hostile, so the hosts do not open it: they copy this file into the node and start it there. It does
not trust the sizes in the archive. It uses the standard library only, with any Python that the node has.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, NoReturn

# The variable with the open file to which a refusal is written. The first process sets it.
REPORT = "TRAINYARD_UNPACKING"
_CHUNK = 1 << 20
# The deepest nesting of folders: more than people use, and far below the limit of paths.
_DEEPEST = 100
_BLOCK = 512
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")
_EXIT = 1
# Python ignores these signals. Programs expect the system's default handling.
_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)


class RefusedError(Exception):
    """The archive is not unpacked. The text says why."""


@dataclass
class Quota:
    """The remaining bytes and files. Unpacked content is counted, because the sizes in the archive may be wrong."""

    bytes: int
    files: int

    def take_file(self) -> None:
        self.files -= 1
        if self.files < 0:
            raise RefusedError("it has more files than a node of this run may have")

    def take(self, size: int) -> None:
        self.bytes -= size
        if self.bytes < 0:
            raise RefusedError("its files are larger than the disk of a node of this run")


class Member(NamedTuple):
    """One entry of an archive. A folder and a link have no content."""

    name: str
    mode: int
    content: IO[bytes] | None
    leads_to: str = ""
    is_hard: bool = False


def is_archive(file: str | os.PathLike[str]) -> bool:
    """Whether the file may be an archive. Reads only its beginning and its end."""
    with open(file, "rb") as opened:
        begins = opened.read(_BLOCK)
    if begins.startswith(_PACKED) or zipfile.is_zipfile(file):
        return True
    try:
        tarfile.TarInfo.frombuf(begins, "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def unpack_archive(file: str, target: str, most_bytes: int, most_files: int) -> bool:
    """Unpacks a ZIP or TAR archive below the folder. RefusedError if it exceeds the limits, or leads elsewhere. Returns
    False if the file is neither."""
    quota = Quota(most_bytes, most_files)
    try:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as zipped:
                _write_all(_zip_members(zipped), target, quota)
        elif tarfile.is_tarfile(file):
            with tarfile.open(file) as tarred:
                _write_all(_tar_members(tarred), target, quota)
        else:
            return False
    except RefusedError:
        raise
    except Exception as error:  # each format has its own errors, and hostile archives cause further ones
        raise RefusedError(str(error) or type(error).__name__) from None
    return True


def _zip_members(archive: zipfile.ZipFile) -> Iterator[Member]:
    """The members of a ZIP archive. A link becomes a file with its target, as by Python's own unpacking."""
    for item in archive.infolist():
        if item.is_dir():
            yield Member(item.filename, 0, None)
        else:
            with archive.open(item) as content:
                yield Member(item.filename, item.external_attr >> 16 & 0o777, content)


def _tar_members(archive: tarfile.TarFile) -> Iterator[Member]:
    for item in archive:
        if item.isdir():
            yield Member(item.name, 0, None)
        elif item.issym() or item.islnk():
            yield Member(item.name, 0, None, item.linkname, item.islnk())
        elif content := archive.extractfile(item) if item.isfile() else None:
            with closing(content):
                yield Member(item.name, item.mode & 0o777, content)
        else:
            raise RefusedError(f"{item.name!r} is neither a file nor a folder nor a link")


def _write_all(members: Iterable[Member], target: str, quota: Quota) -> None:
    root = os.path.realpath(target)
    for member in members:
        quota.take_file()
        parts = member.name.replace("\\", "/").split("/")
        if member.name.startswith(("/", "\\")) or ".." in parts:
            raise RefusedError(f"{member.name!r} leads out of the archive")
        if len(parts) > _DEEPEST:
            raise RefusedError(f"{member.name[:80]!r} lies more than {_DEEPEST} folders deep")
        place = _resolve_inside(root, os.path.join(root, member.name), member.name)
        if member.leads_to:
            _make_link(root, member)
        elif member.content is None:
            os.makedirs(place, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            _write_file(place, member, quota)


def _resolve_inside(root: str, path: str, name: str) -> str:
    real = os.path.realpath(path)
    if os.path.commonpath([root, real]) != root:
        raise RefusedError(f"{name!r} leads out of the archive")
    return real


def _make_link(root: str, member: Member) -> None:
    folder, name = os.path.split(os.path.join(root, member.name))
    folder = _resolve_inside(root, folder, member.name)
    led_to = _resolve_inside(root, os.path.join(root if member.is_hard else folder, member.leads_to), member.name)
    os.makedirs(folder, exist_ok=True)
    place = os.path.join(folder, name)
    if os.path.lexists(place):
        os.unlink(place)
    if member.is_hard:
        os.link(led_to, place)
    else:
        os.symlink(member.leads_to, place)


def _write_file(place: str, member: Member, quota: Quota) -> None:
    assert member.content
    with open(place, "wb") as file:
        while chunk := member.content.read(_CHUNK):
            quota.take(len(chunk))
            file.write(chunk)
    if member.mode:
        os.chmod(place, member.mode & 0o755 | 0o600)


def main(arguments: list[str]) -> NoReturn:
    """`arguments`: a file that names the archive, the target folder, and the command to start."""
    report = int(os.environ.pop(REPORT))
    os.set_inheritable(report, False)
    try:
        with open(arguments[0], encoding="utf-8") as file:
            task: dict[str, Any] = json.load(file)
        target: str = task["target"]
        os.makedirs(target, exist_ok=True)
        script = target
        try:
            if not unpack_archive(task["archive"], target, task["bytes"], task["files"]):
                script = os.path.join(target, task["name"])
                shutil.copyfile(task["archive"], script)
        except (RefusedError, OSError) as error:
            raise RefusedError(f"The artifact cannot be unpacked: {error}") from None
        os.chdir(target)
        command = [*(task["command"] or _archive_command(task, target, script)), *task["arguments"]]
    except RefusedError as error:
        os.write(report, json.dumps({"refused": str(error)}).encode() + b"\n")
        sys.exit(_EXIT)
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(report, json.dumps({"error": str(error)}).encode() + b"\n")
    sys.exit(_EXIT)


def _archive_command(task: dict[str, Any], target: str, script: str) -> list[str]:
    """The command for the file of the archive that is to start. Its name decides on the interpreter."""
    if script == target:
        setting, entry = task["setting"], task["entry"]
        if not entry:
            raise RefusedError(f"{setting} is not set. Set it to the file of the artifact that is to start")
        script = os.path.normpath(os.path.join(target, entry))
        inside = os.path.commonpath([os.path.realpath(target), os.path.realpath(script)]) == os.path.realpath(target)
        if not inside or not os.path.isfile(script):
            raise RefusedError(f"{setting} {entry!r} is not a file of the artifact")
    return ["bash" if script.endswith(".sh") else "python", script]


if __name__ == "__main__":
    main(sys.argv[1:])
