# SPDX-License-Identifier: Apache-2.0
"""The `#SBATCH` lines of a batch script, as sbatch reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.tables import table
from trainyard.bring.notes import NO_EFFECT, SENSELESS, UNKNOWN, NoteTaker, shown_value

_DIRECTIVE = re.compile(r"#SBATCH(?=[ \t])(.*)")
_HETEROGENEOUS = re.compile(r"#SBATCH[ \t]+(hetjob|packjob)\b")
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<parts>\d+(?::\d+){0,2})")
_MEMORY = re.compile(r"(\d+)([KMGT]?)B?", re.IGNORECASE)
_MEGABYTES = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}
_FOREVER = ("infinite", "unlimited", "-1", "0")


@dataclass
class Directives:
    """The options of a script by their long names, with the lines on which they stand."""

    taker: NoteTaker
    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    # Of options that are not carried, too: what they say of machines.
    said: dict[str, str] = field(default_factory=dict)

    def number(self, name: str) -> int | None:
        """A whole number of 0 or more."""
        if name not in self.values:
            return None
        text = self.values[name]
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise self.senseless(name, "is not a whole number")
        return int(text)

    def megabytes(self, name: str) -> int | None:
        """Memory in megabytes. Slurm means megabytes where no unit is given."""
        if name not in self.values:
            return None
        match = _MEMORY.fullmatch(self.values[name])
        if not match:
            raise self.senseless(name, "is not an amount of memory such as 64G")
        return round(int(match[1]) * _MEGABYTES[match[2].upper()])

    def minutes(self, name: str) -> int | None:
        """A time in minutes, rounded up; None without a limit."""
        text = self.values.get(name, "").lower()
        if not text or text in _FOREVER:
            return None
        match = _TIME.fullmatch(text)
        if not match:
            raise self.senseless(name, "is not a time such as 1-12:00:00")
        parts = [int(part) for part in match["parts"].split(":")]
        if match["days"] is not None:
            # After days: hours, minutes, seconds.
            hours, minutes, seconds = (*parts, 0, 0)[:3]
            hours += 24 * int(match["days"])
        else:
            # One number is minutes, two are minutes and seconds.
            hours, minutes, seconds = {1: (0, *parts, 0), 2: (0, *parts), 3: tuple(parts)}[len(parts)]
        return max(1, -(-(3600 * hours + 60 * minutes + seconds) // 60))

    def senseless(self, name: str, why: str) -> Exception:
        message = f"`--{name}={shown_value(name, self.values[name])}` {why}"
        return self.taker.refuse(SENSELESS, self.lines[name], message, "write a value that sbatch takes")

    def line(self, *names: str) -> int:
        """The first line of these options; 0 if there is none of them."""
        return next((self.lines[name] for name in names if name in self.lines), 0)


def option_rows() -> Mapping[str, Mapping[str, Any]]:
    rows: Mapping[str, Mapping[str, Any]] = table("bring/slurm")["options"]
    return rows


def read_directives(lines: list[str], taker: NoteTaker) -> Directives:
    """The options up to the first command. Slurm ignores those after it."""
    found = Directives(taker)
    began = False
    for number, line in enumerate(lines[1:], 2):
        if _HETEROGENEOUS.match(line):
            message = "a heterogeneous job has parts of different machines, which wait for one another"
            raise taker.refuse("TB002", number, message, "bring a script for each part, and make a job of each")
        match = _DIRECTIVE.match(line)
        if match and began:
            message = f"`{line.strip()[:60]}` stands after the first command, so Slurm ignores it"
            taker.note(NO_EFFECT, number, message, "move it up if it is meant")
        elif match:
            _read_options(match[1], number, found)
        elif line.strip() and not line.startswith("#"):
            began = True
    return found


def _read_options(text: str, line: int, found: Directives) -> None:
    taker = found.taker
    try:
        words = shlex.split(text, comments=True)
    except ValueError as error:
        raise taker.refuse(
            SENSELESS, line, f"`#SBATCH{text[:60]}` cannot be split: {error}", "close the quotes"
        ) from None
    rows = option_rows()
    by_letter = {row["short"]: name for name, row in rows.items() if "short" in row}
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            given, joined, value = word[2:].partition("=")
            fitting = [given] if given in rows else [name for name in rows if given and name.startswith(given)]
            name = fitting[0] if len(fitting) == 1 else given
        elif word.startswith("-") and len(word) > 1 and word[1] in by_letter:
            name, value = by_letter[word[1]], word[2:].removeprefix("=")
            joined = value
        else:
            taker.note(UNKNOWN, line, f"`{word[:40]}` is no option of sbatch", "remove it, or add it by hand")
            continue
        row = rows.get(name, {})
        if not joined and not row.get("flag") and words and not words[0].startswith("-"):
            value = words.pop(0)
        shown = f"`--{name}`" + (f" ({shown_value(name, value)})" if value else "")
        found.said[name], found.lines[name] = value, line
        if taker.judge_key(rows, name, shown, line):
            found.values[name] = value
