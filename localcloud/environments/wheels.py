# SPDX-License-Identifier: Apache-2.0
"""Judges a wheel before pip unpacks it: all that it would write stays in the environment.

Packages are not trusted. pip checks most paths itself, but its releases before 26.1.2 wrote a console script wherever
its name led (CVE-2026-8643). What is not plain is refused, so the judgement does not depend on how pip parses a wheel.
"""

from __future__ import annotations

import csv
import re
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

from localcloud.environments.watched_commands import MakeError

MOST_METADATA_BYTES = 100_000_000
_SCHEMES = frozenset({"purelib", "platlib", "headers", "scripts", "data"})
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
# One line of `console_scripts`. pip searches the line for a script, so the whole line has to be one.
_SCRIPT = re.compile(r"(?!\.+[ \t]*=)[\w.+-]+[ \t]*=[ \t]*[\w.]+([ \t]*:[ \t]*[\w.]+)?[ \t]*(\[[\w., \t-]*\][ \t]*)?")


def require_confined_wheel(wheel: Path, shown_as: str) -> None:
    """MakeError if unpacking the wheel could write a file outside of the environment."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            reason = next(_reasons_to_refuse(archive), "")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, OSError, csv.Error) as error:
        reason = f"it cannot be read: {error!s:.200}"
    if reason:
        raise MakeError(
            f"{shown_as}: the package {wheel.name!a} is not installed, because {reason}\n"
            "No package that is meant well needs that. Leave it out, or ask its authors for another release."
        )


def _reasons_to_refuse(archive: zipfile.ZipFile) -> Iterator[str]:
    entries = archive.infolist()
    names = [entry.orig_filename for entry in entries]
    for entry in entries:
        if why := _why_not_inside(entry.orig_filename.removesuffix("/")):
            yield f"its file {entry.orig_filename!a} {why}"
        if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
            yield f"its file {entry.filename!a} is a link, or something else that is not a file"
    if repeated := {name for name in names if names.count(name) > 1} if len(names) != len(set(names)) else set():
        yield f"it has the file {min(repeated)!a} twice"
    for name in names:
        first, *rest = name.split("/")
        if first.lower().endswith(".data") and rest and rest != [""] and rest[0] not in _SCHEMES:
            yield f"its file {name!a} is of no kind that wheels have"
    described = {name.split("/")[0] for name in names if name.split("/")[0].lower().endswith(".dist-info")}
    if len(described) != 1 or not min(described).endswith(".dist-info"):
        yield f"it has {len(described)} folders `.dist-info`, and a wheel has one"
    folder = min(described, default="")
    for row in csv.reader(_read_metadata(archive, f"{folder}/RECORD").splitlines()):
        if row and (why := _why_not_inside(row[0].removesuffix("/"))):
            yield f"its list RECORD has the file {row[0]!a}, which {why}"
    # pip makes a program of each entry point of `console_scripts` and `gui_scripts`, under the entry point's name.
    text = _read_metadata(archive, f"{folder}/entry_points.txt")
    if _UNPRINTABLE.search(re.sub(r"\r?\n|\t", "", text)):
        yield "its list of entry points has a control character"
    makes_scripts = False
    for line in (line.strip() for line in re.split(r"\r?\n", text)):
        if line.startswith("["):
            makes_scripts = "script" in line.lower()
        elif makes_scripts and line and not line.startswith("#") and not _SCRIPT.fullmatch(line):
            yield f"it has a script {line[:100]!a}, which is not a plain name and a function"


def _why_not_inside(path: str) -> str:
    """Why a path of a wheel may lead out of the folder that it is unpacked into; empty if it cannot."""
    if _UNPRINTABLE.search(path) or "\\" in path:
        return "has a control character or a backslash"
    if path.startswith("/") or re.match(r"[A-Za-z]:", path):
        return "is an absolute path"
    return "leads to another folder" if {"", ".", ".."} & set(path.split("/")) else ""


def _read_metadata(archive: zipfile.ZipFile, name: str) -> str:
    """The text of a metadata file; empty without it."""
    if name not in archive.namelist():
        return ""
    if archive.getinfo(name).file_size > MOST_METADATA_BYTES:
        raise ValueError(f"{name!a} is too large")
    return archive.read(name).decode()
