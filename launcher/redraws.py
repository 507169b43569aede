# SPDX-License-Identifier: Apache-2.0
"""Lines that a program redraws, such as progress bars: how they are passed on in parts, and how a terminal would show
them.

A node passes such a line on in parts, one a second, because each part is an entry of a cloud's log. Each part but the
last one of a line has a mark: `[0+] ` in place of `[0] `. Parts have exactly what the program wrote. Readers of a log
put the parts together with this module, and escape the result afterwards (docs/decisions/0014).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

# The longest line is that of a node's output. A block of more rows could not be read anyway.
_LONGEST, _MOST_ROWS, _TAB = 65_536, 50, 4
# How far to the right a sequence may move the cursor.
_FARTHEST = 1000
# A bar as tqdm draws it, to its closing bracket, and what another writer added to its row.
_BAR_AND_TEXT = re.compile(r"(.*?\d+%\|[^|]*\| *\S+/\S+ \[(?:[^\[\]]|\[[^\[\]]*\])*\])(.*\S.*)")
_LABEL = re.compile(r"\[(\d+(?:\.\w+)?)(\+?)\](?: |$)")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_TOKEN = re.compile(r"[^\x00-\x1f\x7f]+|\x08+|\x1b\[([0-?]*)[ -/]*([@-~])|.", re.DOTALL)


def part_prefix(prefix: str) -> str:
    """The prefix of a part, from the prefix of the line."""
    return prefix.replace("] ", "+] ", 1)


class Drawing:
    """One or a few lines, drawn as on a terminal. Carriage returns, backspaces and cursor movements have their effect,
    colours are left out. Other control characters stay, and have to be escaped later."""

    def __init__(self) -> None:
        self._rows = [""]
        self._row = self._column = 0

    def feed(self, text: str) -> None:
        for token in _TOKEN.finditer(text):
            if token[2]:
                self._order(token[1], token[2])
            else:
                self._take(token[0])

    @property
    def rows(self) -> list[str]:
        """The rows that are not blank, from the top."""
        return [row.rstrip() for row in self._rows if row.strip()]

    def _take(self, text: str) -> None:
        if text == "\r":
            self._column = 0
        elif text == "\n":
            self._move(1)
        elif text[0] == "\b":
            self._column = max(0, self._column - len(text))
        elif text == "\t":
            self._write(" " * (_TAB - self._column % _TAB))
        else:
            self._write(text)

    def _write(self, text: str) -> None:
        row, begin = self._rows[self._row], self._column
        self._column = min(begin + len(text), _LONGEST)
        self._rows[self._row] = (row[:begin].ljust(begin) + text + row[begin + len(text) :])[:_LONGEST]

    def _order(self, given: str, kind: str) -> None:
        first = given.partition(";")[0]
        number = int(first) if first.isdigit() and len(first) < 6 else 0
        row, column = self._rows[self._row], self._column
        if kind in "ABEF":
            self._move((-1 if kind in "AF" else 1) * max(1, number), keep=kind in "AB")
        elif kind in "CD":
            there = column + (1 if kind == "C" else -1) * max(1, number)
            self._column = min(max(0, there), max(column, _FARTHEST))
        elif kind == "G":
            self._column = min(max(0, number - 1), _FARTHEST)
        elif kind == "K":
            self._rows[self._row] = {0: row[:column], 1: " " * column + row[column:]}.get(number, "")
        elif kind == "J" and number == 0:
            # Clears only what is below: a program that clears the whole screen does not mean its log.
            self._rows[self._row] = row[:column]
            del self._rows[self._row + 1 :]

    def _move(self, rows: int, keep: bool = False) -> None:
        """Moves the cursor. Rows above the first or below the last one exist as soon as something is drawn there."""
        self._row += rows
        above = min(max(0, -self._row), _MOST_ROWS - len(self._rows))
        self._rows[:0] = [""] * above
        self._row = max(0, self._row + above)
        self._rows += [""] * min(self._row + 1 - len(self._rows), _MOST_ROWS)
        if len(self._rows) > _MOST_ROWS:
            self._rows = self._rows[-_MOST_ROWS:]
        self._row = min(self._row, len(self._rows) - 1)
        self._column = self._column if keep else 0


@dataclass
class Lines:
    """Puts the parts of lines together. `source` distinguishes nodes, and the label the processes of a node."""

    _open: dict[tuple[str, str], Drawing] = field(default_factory=dict)

    def add(self, source: str, text: str) -> list[str]:
        """Adds a line or a part. Returns the lines that are complete now, each with its label."""
        found = _LABEL.match(text)
        label, goes_on = (found[1], bool(found[2])) if found else ("", False)
        key = (source, label)
        if not goes_on and key not in self._open and not _CONTROL.search(text):
            return [text]
        drawing = self._open.setdefault(key, Drawing())
        drawing.feed(text[found.end() :] if found else text)
        if goes_on:
            return []
        del self._open[key]
        return _with_label(label, drawing)

    def unfinished(self) -> list[tuple[str, str]]:
        """The incomplete lines in their present form, each with its source, always in the same order."""
        drawings = sorted(self._open.items(), key=lambda item: (len(item[0][0]), item[0]))
        return [(source, line) for (source, label), drawing in drawings for line in _with_label(label, drawing)]


def whole_lines(texts: Iterable[str]) -> list[str]:
    """The lines of one node. Incomplete ones come last, in their present form."""
    lines = Lines()
    ended = [line for text in texts for line in lines.add("", text)]
    return [*ended, *(line for _, line in lines.unfinished())]


def bar_of(text: str) -> str:
    """The bar in the last row of a process's output. Empty if there is no row."""
    drawing = Drawing()
    drawing.feed(text)
    return _bar_and_text(drawing.rows[-1])[0] if drawing.rows else ""


def _bar_and_text(row: str) -> tuple[str, ...]:
    """A bar and the text after it. A program that prints while its bar stands there writes into the bar's row."""
    found = _BAR_AND_TEXT.fullmatch(row)
    return (found[1], found[2].strip()) if found else (row,)


def _with_label(label: str, drawing: Drawing) -> list[str]:
    rows = [part for row in drawing.rows for part in _bar_and_text(row)]
    return [f"[{label}] {row}" if label else row for row in rows]
