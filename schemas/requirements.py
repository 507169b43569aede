# SPDX-License-Identifier: Apache-2.0
"""Reads a job's pip requirements file. The file is not trusted: only plain lines of packages are accepted.

pip never gets the file itself. It gets the accepted lines, below our own options.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.imports import normalized_name

if TYPE_CHECKING:
    from packaging.requirements import Requirement

MOST_BYTES = 1_000_000
MOST_FILES = 10
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_HASH = re.compile(r"\s--hash[=\s](\S+)")
_DIGEST = re.compile(r"(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})")
_URL_HASH = re.compile(r"#(?:\S*&)?(sha256|sha384|sha512)=([0-9a-f]+)\b")
_CREDENTIALS = re.compile(r"//[^/\s]*@")
_OTHER_FILE = re.compile(r"(?:-r\s*|--requirement[=\s]\s*)(\S.*)")
# pip reads a name with such an ending as a file, even if there is no such file.
_ARCHIVE = re.compile(r".+\.(?:whl|zip|tar|tgz|tbz|txz|tlz|tar\.\w+)", re.IGNORECASE)
_PATH = re.compile(r"[.~/\\]|[A-Za-z]:\\|file:")
_NO_PATHS = (
    "is a path, which other machines do not have",
    "put the wheel into a package index, or into a folder that pip's `find-links` names",
)
_REPOSITORY = re.compile(r"(?:git|hg|svn|bzr)\+|[^@]*@\s*(?:git|hg|svn|bzr)\+")
# Options that are ignored, because they are always in effect.
_HOLDS_ANYWAY = ("--require-hashes", "--only-binary", "--prefer-binary")
_IN_PIP = "set it in pip's own configuration, where credentials belong too: `pip config set global.{} …`"
_REMEDIES = {
    "-i": _IN_PIP.format("index-url"),
    "--index-url": _IN_PIP.format("index-url"),
    "--extra-index-url": _IN_PIP.format("extra-index-url"),
    "--trusted-host": _IN_PIP.format("trusted-host"),
    "--no-index": _IN_PIP.format("no-index"),
    "-f": _IN_PIP.format("find-links"),
    "--find-links": _IN_PIP.format("find-links"),
    "-e": "put the code into the code folder, or its wheel into a package index",
    "--editable": "put the code into the code folder, or its wheel into a package index",
    "-c": "write the versions into the lines of the packages",
    "--constraint": "write the versions into the lines of the packages",
    "--no-binary": "name the package under `build` in the stack file: `requirements: { file: …, build: [NAME] }`",
}


@dataclass(frozen=True, slots=True)
class LineProblem:
    """The problem with a line. Line 0 is the whole file."""

    code: str
    file: str
    line: int
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class PackageLine:
    """One requirement in the form for pip, and its place in the file."""

    text: str
    name: str
    hashed: bool
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class PackageList:
    """The packages of a job. `build`: those whose source may be built, which runs their code."""

    lines: tuple[PackageLine, ...] = ()
    build: tuple[str, ...] = ()
    problems: tuple[LineProblem, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        return frozenset(line.name for line in self.lines)

    @property
    def hashed(self) -> bool:
        """Whether pip requires a hash of every package. In pip, one line with a hash is enough for that."""
        return any(line.hashed for line in self.lines)

    @property
    def text(self) -> str:
        """The file for pip. The same packages give the same text, whatever the name of the team's file is."""
        return "\n".join([*self._options, *(line.text for line in self.lines), ""])

    @property
    def places(self) -> tuple[str, ...]:
        """The place of each line in the team's files. Empty for our own lines."""
        return (*("" for _ in self._options), *(f"{line.file}:{line.line}" for line in self.lines))

    @property
    def _options(self) -> list[str]:
        options = ["--only-binary :all:", *(f"--no-binary {name}" for name in self.build)]
        return [*options, "--require-hashes"] if self.hashed else options

    @property
    def digest(self) -> str:
        """The name of these packages in launch documents and of local environments."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


class _RefusedError(Exception):
    """A refused line: the part, the reason, and the remedy."""

    def __init__(self, text: str, message: str, remedy: str) -> None:
        super().__init__(message)
        self.text, self.message, self.remedy = text, message, remedy


def read_requirements(file: Path, shown_as: str, root: Path, build: tuple[str, ...]) -> PackageList:
    """The packages of a file inside the project. It never raises because of the file's content."""
    reader = _Reader(root, file.parent, tuple(normalized_name(name) for name in build))
    lines = tuple(reader.read(file, shown_as))
    problems, hashed = reader.problems, next((line for line in lines if line.hashed), None)
    for line in lines:
        if hashed and not line.hashed:
            message = (
                f"`{line.name}` has no hash, and line {hashed.line} has one: then pip demands one of every package"
            )
            remedy = "add `--hash=sha256:…`, which `pip-compile --generate-hashes` writes for all packages at once"
            problems.append(LineProblem("TY842", line.file, line.line, message, remedy))
    for name in reader.build:
        if lines and name not in {line.name for line in lines}:
            message = f"`{name}` is to be built, and the file does not name it"
            remedy = f"add a line `{name}==VERSION`, or remove it from `build`"
            problems.append(LineProblem("TY843", shown_as, 0, message, remedy))
    return PackageList(lines, tuple(sorted(set(reader.build))), tuple(problems))


@dataclass
class _Reader:
    """Reads a file and the files that it includes. All of them lie in one folder of the project."""

    root: Path
    folder: Path
    build: tuple[str, ...]

    def __post_init__(self) -> None:
        self.problems: list[LineProblem] = []
        self._read: list[Path] = []

    def read(self, file: Path, shown_as: str) -> Iterator[PackageLine]:
        text = self._text(file, shown_as)
        for number, line in logical_lines(text):
            try:
                taken = self._line(line, shown_as, number)
            except _RefusedError as refused:
                self._wrong("TY841", shown_as, number, f"`{refused.text[:80]}` {refused.message}", refused.remedy)
                continue
            if isinstance(taken, PackageLine):
                yield taken
            elif taken is not None:
                yield from self.read(file.parent / taken, str(Path(shown_as).parent / taken))

    def _text(self, file: Path, shown_as: str) -> str:
        try:
            real = Path(os.path.realpath(file))
            if real in self._read:
                return ""
            why = self._why_not(real)
            if why is None:
                self._read.append(real)
                return real.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError:
            why = "is not UTF-8", "write it as plain text"
        except (OSError, ValueError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else str(problem)
            why = f"cannot be read: {reason}", "correct the path"
        self._wrong("TY840", shown_as, 0, *why)
        return ""

    def _why_not(self, real: Path) -> tuple[str, str] | None:
        if not real.is_relative_to(self.root):
            return "is outside the project: other people's checkouts do not have it", "move it beside the code"
        if self._read and not real.is_relative_to(os.path.realpath(self.folder)):
            return "is outside the folder of the first file", "move it into that folder"
        if not real.is_file():
            what = "is not a file" if real.exists() else "does not exist"
            return what, "create it, or correct the path, which starts at the folder of the file that names it"
        if len(self._read) == MOST_FILES:
            return f"is one of more than {MOST_FILES} files", "write the packages into one file"
        if real.stat().st_size > MOST_BYTES:
            return "is larger than 1 MB, so it is not a list of packages", "name the right file"
        return None

    def _line(self, line: str, file: str, number: int) -> PackageLine | str | None:
        """The package of a line, or the path of another file. None if the option is ignored. Raises _RefusedError."""
        if match := _OTHER_FILE.fullmatch(line):
            if "://" in match[1] or "${" in match[1]:
                raise _RefusedError(line, "leads to another place", "write its lines into this file")
            return match[1].strip()
        if line.startswith("-"):
            option = re.split(r"[=\s]", line, maxsplit=1)[0]
            if option in _HOLDS_ANYWAY:
                return None
            # `-ihttps://…` is one word, and so is `-e.`.
            named = option if option in _REMEDIES else option[:2]
            shown = _CREDENTIALS.sub("//…@", option)
            raise _RefusedError(shown, "is an option that is not taken from a file", _REMEDIES.get(named, "remove it"))
        if "${" in line:
            remedy = "write the value itself; credentials belong in pip's own configuration"
            raise _RefusedError(line, "takes a value from the environment", remedy)
        if _REPOSITORY.match(line):
            remedy = "publish it as a wheel in a package index, or put the code into the code folder"
            raise _RefusedError(line, "is code from a repository, which pip would build", remedy)
        return self._package(line, file, number)

    def _package(self, line: str, file: str, number: int) -> PackageLine:
        hashes = _HASH.findall(line)
        requirement = _parse_requirement(_HASH.sub("", line).strip())
        if wrong := next((digest for digest in hashes if not _DIGEST.fullmatch(digest)), None):
            raise _RefusedError(wrong, "is not a hash", "write it as `--hash=sha256:…`, with 64 digits")
        url = requirement.url or ""
        hashed = bool(hashes or _URL_HASH.search(url))
        if _CREDENTIALS.search(url):
            remedy = "take them out: the image would keep them. pip reads them from its configuration, or from ~/.netrc"
            raise _RefusedError(_CREDENTIALS.sub("//…@", url), "holds credentials", remedy)
        if url and not url.startswith("https://"):
            raise _RefusedError(url, "is not an address with https", "name the package, and publish it in an index")
        if url and not hashed:
            raise _RefusedError(url, "is an address without a hash", "add `--hash=sha256:…` to the line")
        name = normalized_name(requirement.name)
        if url and not url.partition("#")[0].partition("?")[0].endswith(".whl") and name not in self.build:
            remedy = f"name a wheel, or allow the build: `requirements: {{ file: …, build: [{requirement.name}] }}`"
            raise _RefusedError(url, "is not a wheel: pip would run its build script", remedy)
        # In our own spelling, because releases of `packaging` print the same package in different ways.
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        versions = f" @ {url}" if url else ",".join(sorted(map(str, requirement.specifier)))
        marker = f" ; {requirement.marker}" if requirement.marker else ""
        parts = [f"{name}{extras}{versions}{marker}", *(f"--hash={digest}" for digest in hashes)]
        return PackageLine(" ".join(parts), name, hashed, file, number)

    def _wrong(self, code: str, file: str, line: int, message: str, remedy: str) -> None:
        self.problems.append(LineProblem(code, file, line, message, remedy))


def _parse_requirement(text: str) -> Requirement:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(text)
        if _ARCHIVE.fullmatch(requirement.name):
            raise _RefusedError(text, *_NO_PATHS)
        return requirement
    except (InvalidRequirement, RecursionError, ValueError) as problem:
        if _PATH.match(text) or _ARCHIVE.fullmatch(text):
            raise _RefusedError(text, *_NO_PATHS) from None
        why = str(problem).splitlines()[0][:80] if str(problem) else "it cannot be read"
        raise _RefusedError(text, f"is not a package: {why}", "write it as `name==1.0`") from None


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments. A line with a backslash at its end continues on the next one."""
    held, first = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        first = first if held else number
        part = "" if held and line.lstrip().startswith("#") else line
        if part.endswith("\\") and not _COMMENT.search(part):
            held += part[:-1] + " "
            continue
        whole, held = _COMMENT.sub("", held + part).strip(), ""
        if whole:
            yield first, whole
    if whole := _COMMENT.sub("", held).strip():
        yield first, whole
