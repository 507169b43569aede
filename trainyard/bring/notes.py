# SPDX-License-Identifier: Apache-2.0
"""Notes on what a file says and a stack does not: with file, line, reason, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from catalog.secret_looks import holds_secret, looks_secret, names_secret, without_tokens
from catalog.tables import table

# The outcomes of a row of catalog/bring, and the code of a note on each. What is carried needs none.
_CODES: Mapping[str, str] = {"refused": "TB002", "left_out": "TB101", "meaningless": "TB201"}
UNREADABLE, IMPOSSIBLE, SENSELESS, MISSING = "TB001", "TB002", "TB003", "TB004"
LEFT_OUT, UNKNOWN, OTHERWISE, ELSEWHERE = "TB101", "TB102", "TB103", "TB104"
MEANINGLESS, CHOICE, PLACEHOLDER_LEFT, NO_EFFECT = "TB201", "TB202", "TB203", "TB204"
_LONGEST = 300
_LONGEST_VALUE = 60


@dataclass(frozen=True, slots=True)
class Note:
    """`line` 0: the whole file. `message` says what and why, `remedy` what to do."""

    code: str
    file: str
    line: int
    message: str
    remedy: str

    @property
    def severity(self) -> Literal["error", "warning", "note"]:
        severity: Literal["error", "warning", "note"] = note_codes()[self.code]["severity"]
        return severity

    def text(self) -> str:
        """One line, without secrets."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        whole = "; ".join(filter(None, [f"{place}: {self.severity} {self.code}: {self.message}", self.remedy]))
        line = " ".join(without_tokens(whole).split())
        return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def note_codes() -> Mapping[str, Mapping[str, Any]]:
    """Code -> severity and title."""
    return table("bring/codes")


class BringError(Exception):
    """There is no stack: the note says why."""

    def __init__(self, note: Note) -> None:
        super().__init__(note.text())
        self.note = note


@dataclass
class NoteTaker:
    """Collects the notes on one file."""

    file: str
    notes: list[Note] = field(default_factory=list)

    def note(self, code: str, line: int, message: str, remedy: str) -> None:
        """Adds a note. A second one that says the same of another line is left out."""
        if all((note.code, note.message) != (code, message) for note in self.notes):
            self.notes.append(Note(code, self.file, line, message, remedy))

    def judge_key(self, rows: Mapping[str, Mapping[str, Any]], key: str, shown: str, line: int) -> bool:
        """Whether a key of the source is carried. Notes why not, by its row."""
        row = rows.get(key)
        if row is None:
            self.note(UNKNOWN, line, f"{shown} is not known, and was left out", "check its name, or add it by hand")
            return False
        for outcome, code in _CODES.items():
            if outcome in row:
                fate = {"refused": "cannot be brought", "left_out": "was left out", "meaningless": "is not needed"}
                remedy = row.get("do", "remove it" if outcome == "refused" else "")
                self.note(code, line, f"{shown} {fate[outcome]}: {row[outcome]}", remedy)
                return False
        return True

    def refuse(self, code: str, line: int, message: str, remedy: str) -> BringError:
        """An error to raise."""
        return BringError(Note(code, self.file, line, message, remedy))


def shown_value(name: str, value: object) -> str:
    """A value as a message may show it: short, and never a secret."""
    text = " ".join(str(value).split())
    if is_secret_text(name, text):
        return "****"
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def is_secret_text(name: str, value: str) -> bool:
    """Whether a value must neither be shown nor stand in a stack file in plain text."""
    return names_secret(name, value) or looks_secret(value) or holds_secret(value)


def any_secret_text(value: Any, name: str = "") -> bool:
    """Whether a value, or one in its tables and lists, is a secret in plain text."""
    if isinstance(value, Mapping):
        return any(any_secret_text(item, str(key)) for key, item in value.items())
    if isinstance(value, list):
        return any(any_secret_text(item, name) for item in value)
    return is_secret_text(name, str(value))


def note_secret_words(variables: Iterable[str], line: int, taker: NoteTaker) -> None:
    """Notes on secrets in plain text that a command had. It reads these variables instead."""
    for name in variables:
        message = f"a secret in plain text was left out of the command, which reads it as ${name}"
        taker.note(LEFT_OUT, line, message, f"write it with `trainyard secret set`, as `{name}` under `env` of the job")
