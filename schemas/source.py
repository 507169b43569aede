# SPDX-License-Identifier: Apache-2.0
"""YAML with line numbers, read as Pulumi's engine reads it.

Events are read one by one rather than composed, so that depth, size and aliases are limited from the start.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml

from schemas.findings import Finding, Path, Severity
from schemas.scalars import Unclear, resolve_scalar

MAXIMUM_BYTES = 2_000_000
MAXIMUM_DEPTH = 40
MAXIMUM_VALUES = 200_000

Position = tuple[int, int]
# The codes of findings about a file's shape. The checks of its meaning run only after these pass.
_TITLES = {
    "TY0000": "a key of trainyard has its value in Pulumi.yaml",
    "TY001": "a file cannot be read",
    "TY002": "a file is not UTF-8",
    "TY003": "a file is not YAML",
    "TY004": "a key is given twice",
    "TY005": "a file is too large or too deep",
    "TY006": "a file is not a stack file",
    "TY007": "a text without quotes is read as something else",
    "TY010": "an unknown key",
    "TY011": "a value of the wrong kind",
    "TY012": "a key is missing",
    "TY013": "a value that is not one of those allowed",
    "TY014": "a malformed value",
    "TY015": "a plain value where a secret is required",
    "TY016": "a secret where a plain value is required",
    "TY017": "a configuration larger than Pulumi's engine can pass on",
    "TY018": "a key of another platform",
}
# Not an error: one file may serve several platforms.
ELSEWHERE = "TY018"
_TEXT_TAG = "tag:yaml.org,2002:str"
_MAPPING_TAG, _LIST_TAG = "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"


def shape_titles() -> dict[str, str]:
    return dict(_TITLES)


def shape_severity(code: str) -> Severity:
    return "warning" if code == ELSEWHERE else "error"


@dataclass(slots=True)
class Source:
    """A file's values, and the line and column of each."""

    file: str
    text: str = ""
    data: Any = None
    findings: list[Finding] = field(default_factory=list)
    marks: dict[Path, Position] = field(default_factory=dict)
    # The spelling of values other than texts: `1.10` becomes the number 1.1, but remedies must show `1.10`.
    written: dict[Path, str] = field(default_factory=dict)

    def position(self, path: Path) -> Position:
        """Line and column of a path. For an absent key: of its nearest existing parent."""
        for length in range(len(path), -1, -1):
            if (mark := self.marks.get(path[:length])) is not None:
                return mark
        return (1, 1) if self.text else (0, 0)

    def add(self, code: str, path: Path, message: str, remedy: str, mark: Position | None = None) -> None:
        line, column = mark or self.position(path)
        severity = shape_severity(code)
        self.findings.append(Finding(code, path, message, remedy, severity, self.file, line, column))


def read_source(file: FilePath, shown_as: str | None = None) -> Source:
    """The values of a file. If it cannot be read, the reason becomes a finding."""
    source = Source(shown_as or str(file))
    if _is_link_to_another_kind(file):
        remedy = "put the file itself there: a link could lead to any file of who reads it, and findings show lines"
        source.add("TY001", (), "is a link to something other than a stack file", remedy)
        return source
    try:
        with file.open("rb") as stream:
            data = stream.read(MAXIMUM_BYTES + 1)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        source.add("TY001", (), f"cannot be read: {reason}", "name a stack file that exists and that you may read")
        return source
    if len(data) > MAXIMUM_BYTES:
        source.add("TY005", (), f"is larger than {MAXIMUM_BYTES // 1_000_000} MB", "split it into several stacks")
        return source
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        source.add("TY002", (), f"byte {problem.start} is not UTF-8", "save the file as UTF-8", (line, 1))
        return source
    return parse_source(text, source.file, source)


def _is_link_to_another_kind(file: FilePath) -> bool:
    """Whether a file by the name of a stack's is a link to something other than a stack file, or than a YAML file of
    the same folder."""
    if not (file.match("Pulumi.*.yaml") and file.is_symlink()):
        return False
    target = file.resolve()
    beside = target.suffix in (".yaml", ".yml") and target.parent == file.parent.resolve()
    return not (beside or target.match("Pulumi.*.yaml"))


# Characters that the parser does not accept.
_NOT_FOR_YAML = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse_source(text: str, file: str = "<text>", source: Source | None = None) -> Source:
    source = source or Source(file)
    source.text = text
    try:
        _Builder(source).build()
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None) or getattr(problem, "context_mark", None)
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        what = getattr(problem, "problem", None) or getattr(problem, "reason", None) or "it cannot be parsed"
        lines = source.text.splitlines()
        line = lines[place[0] - 1] if place[0] <= len(lines) else ""
        remedy = "correct the line; texts with `: `, `#`, `{`, `*`, `&` or `%` need quotes"
        if "\t" in line[: len(line) - len(line.lstrip())]:
            remedy = "indent with spaces: YAML does not allow tabs"
        if isinstance(problem, yaml.reader.ReaderError) and (refused := _NOT_FOR_YAML.search(source.text)):
            # The parser gives no line for this problem.
            before = source.text[: refused.start()]
            place = before.count("\n") + 1, refused.start() - before.rfind("\n")
            remedy = f"remove the character U+{ord(refused[0]):04X}"
        source.add("TY003", (), f"is not YAML: {what}", remedy, place)
        source.data = None
    except _RefusedError as problem:
        source.add(problem.code, (), str(problem), problem.remedy, problem.mark)
        source.data = None
    return source


class _RefusedError(Exception):
    """Ends the reading of a file. By default, because it is too large or too deep."""

    def __init__(
        self, message: str, mark: Position, remedy: str = "write it flatter and without repeated aliases",
        code: str = "TY005",
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.mark, self.remedy, self.code = mark, remedy, code


@dataclass(slots=True)
class _Open:
    """A mapping or list being read. `size` counts the values of an alias each time it is used."""

    value: Any
    path: Path
    anchor: str | None
    key: str | None = None
    merges: bool = False
    expects_key: bool = True
    size: int = 1
    merged: list[Any] = field(default_factory=list)


class _Builder:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.documents = 0

    def build(self) -> None:
        for event in yaml.parse(self.source.text, Loader=yaml.CSafeLoader):
            mark = (event.start_mark.line + 1, event.start_mark.column + 1)  # type: ignore[union-attr]
            match event:
                case yaml.ScalarEvent():
                    self._scalar(event, mark)
                case yaml.MappingStartEvent():
                    self._open({}, event, mark)
                case yaml.SequenceStartEvent():
                    self._open([], event, mark)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self._close(mark)
                case yaml.AliasEvent():
                    self._alias(event.anchor or "", mark)
                case yaml.DocumentStartEvent():
                    self.documents += 1
                    if self.documents > 1:
                        self.source.add("TY006", (), "holds a second document", "keep one stack in each file", mark)
                        return

    def _path(self, mark: Position) -> Path:
        """The path of the next value."""
        if not self.stack:
            return ()
        top = self.stack[-1]
        if isinstance(top.value, list):
            path = (*top.path, len(top.value))
            self.source.marks.setdefault(path, mark)
            return path
        return (*top.path, top.key or "")

    def _scalar(self, event: Any, mark: Position) -> None:
        top = self.stack[-1] if self.stack else None
        is_key = top is not None and isinstance(top.value, dict) and top.expects_key
        plain = event.implicit[0] and event.tag in (None, "!")
        path = (*top.path, event.value) if is_key and top else self._path(mark)
        if not plain:
            self._refuse_tag(event.tag, _TEXT_TAG, path, mark)
        value = resolve_scalar(event.value) if plain else event.value
        if isinstance(value, Unclear):
            self.source.add("TY007", path, f"`{event.value}` is read as {value.kind}", "put it in quotes", mark)
            value = event.value
        if is_key and top:
            self._key(top, value, event.value, plain, mark)
            return
        if not isinstance(value, str):
            self.source.written[path] = event.value
        if event.anchor:
            self.anchors[event.anchor] = (value, 1)
        self._put(value, 1, mark)

    def _key(self, top: _Open, value: Any, text: str, plain: bool, mark: Position) -> None:
        if isinstance(value, float) or value is None:
            self.source.add("TY007", (*top.path, text), f"the key `{text}` is not a text", "put it in quotes", mark)
        key = str(value) if type(value) is int else text
        top.merges = plain and key == "<<"
        if key in top.value and not top.merges:
            first = self.source.marks.get((*top.path, key), mark)[0]
            self.source.add(
                "TY004", (*top.path, key), f"`{key}` is given twice, first on line {first}", "keep one of them", mark
            )
        top.key, top.expects_key = key, False
        self.source.marks[(*top.path, key)] = mark

    def _open(self, value: Any, event: Any, mark: Position) -> None:
        if self.stack and isinstance(self.stack[-1].value, dict) and self.stack[-1].expects_key:
            raise yaml.composer.ComposerError(None, None, "a key must be a text", event.start_mark)
        if len(self.stack) >= MAXIMUM_DEPTH:
            raise _RefusedError(f"is nested deeper than {MAXIMUM_DEPTH} levels", mark)
        path = self._path(mark)
        self.source.marks.setdefault(path, mark)
        self._refuse_tag(event.tag, _MAPPING_TAG if isinstance(value, dict) else _LIST_TAG, path, mark)
        self.stack.append(_Open(value, path, event.anchor))

    def _refuse_tag(self, tag: str | None, own: str, path: Path, mark: Position) -> None:
        if tag not in (None, "!", own):
            self.source.add("TY003", path, f"has the tag {tag}", "remove the tag; put quotes around texts", mark)

    def _close(self, mark: Position) -> None:
        done = self.stack.pop()
        for other in done.merged:
            for key, item in other.items():
                done.value.setdefault(key, item)
        if done.anchor:
            self.anchors[done.anchor] = (done.value, done.size)
        self._put(done.value, done.size, mark)

    def _alias(self, anchor: str, mark: Position) -> None:
        if self.stack and isinstance(self.stack[-1].value, dict) and self.stack[-1].expects_key:
            raise _RefusedError("uses an alias as a key", mark, "write the key itself", "TY003")
        if anchor not in self.anchors:
            message = f"uses the alias *{anchor}, but no value above has the anchor &{anchor}"
            remedy = f"put it in quotes if you mean the text `*{anchor}`, or define &{anchor} above"
            raise _RefusedError(message, mark, remedy, "TY003")
        self._path(mark)
        value, size = self.anchors[anchor]
        self._put(value, size, mark)

    def _put(self, value: Any, size: int, mark: Position) -> None:
        if not self.stack:
            self.source.data = value
            return
        top = self.stack[-1]
        top.size += size
        if top.size > MAXIMUM_VALUES:
            raise _RefusedError(f"grows to more than {MAXIMUM_VALUES} values", mark)
        if isinstance(top.value, list):
            top.value.append(value)
            return
        merged = value if isinstance(value, list) else [value]
        if top.merges and all(isinstance(item, dict) for item in merged):
            top.merged += merged
        else:
            top.value[top.key] = value
        top.expects_key = True
