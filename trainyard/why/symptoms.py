# SPDX-License-Identifier: Apache-2.0
"""Known texts of platforms, launchers and programs, and what they mean: rows of catalog/symptoms.toml, and of a team's
own file of the same columns. Pure but for the catalog.

A pattern is literal text, in capitals or not, in which `*` stands for anything. So a match takes linear time, whatever
a team writes, and whatever a program prints.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, get_args

from catalog.tables import rows_at, table
from trainyard.why.model import Kind

# What is read of a rank's output, and of one of its lines.
MOST_CHARACTERS, LONGEST_LINE = 64 * 1024, 2000
# A program that fails says why at the end.
_LAST_LINES = 40
OUTPUT, LAUNCHER, PLATFORM = "output", "launcher", "platform"
_REQUIRED = {"kind", "patterns", "meaning", "look", "remedy"}
_SHORTEST_PATTERN = 4


class SymptomsError(ValueError):
    """A file of symptoms that cannot be read. The text says where, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """`source`: whose words these are. `peer`: the cause may be in another rank. `frameworks`: empty for all.
    `outside`: what nobody on a node can have written, even where nodes report about themselves. `tested`: means this
    only if every planned connection was open before training. `doubtful`: the same words may mean something else."""

    kind: Kind
    patterns: tuple[tuple[str, ...], ...]
    meaning: str
    look: str = ""
    remedy: str = ""
    source: str = OUTPUT
    frameworks: tuple[str, ...] = ()
    peer: bool = False
    outside: bool = False
    tested: bool = False
    doubtful: bool = False

    def matches(self, line: str) -> bool:
        """`line` in small letters."""
        return any(_contains_in_order(line, parts) for parts in self.patterns)


# `from` is no name of a field.
_COLUMNS = {field.name for field in fields(Symptom)} - {"source"} | {"from"}


@dataclass(frozen=True, slots=True)
class FoundSymptom:
    symptom: Symptom
    line: str


def _contains_in_order(line: str, parts: Sequence[str]) -> bool:
    start = 0
    for part in parts:
        start = line.find(part, start)
        if start < 0:
            return False
        start += len(part)
    return True


@cache
def known_symptoms() -> tuple[Symptom, ...]:
    """The rows of the catalog, and after them the patterns of platforms that know some."""
    read = table("symptoms")
    tables: list[Any] = [rows_at(place) for place in read["more"]]
    more = [
        Symptom("exception", tuple(_parts(text) for text in texts), row["words"], "the rank's last lines")
        for rows in tables
        for row in rows
        if (texts := [when["says"] for when in row.get("when", ()) if "says" in when])
    ]
    return (*parse_symptoms(read["symptom"], "catalog/symptoms.toml"), *more)


def read_team_symptoms(content: str, file: str) -> tuple[Symptom, ...]:
    """The rows of a team's file. Raises SymptomsError."""
    try:
        read = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise SymptomsError(f"{file} is no TOML: {error}") from None
    if set(read) - {"symptom"} or not isinstance(read.get("symptom", []), list):
        raise SymptomsError(f"{file}: write one [[symptom]] for each text; other tables are not known")
    return parse_symptoms(read.get("symptom", []), file)


def parse_symptoms(rows: Sequence[Any], file: str) -> tuple[Symptom, ...]:
    return tuple(_parse_row(row, f"{file}, [[symptom]] number {number}") for number, row in enumerate(rows, 1))


def _parse_row(row: Any, where: str) -> Symptom:
    if not isinstance(row, Mapping):
        raise SymptomsError(f"{where}: this is no table")
    if unknown := sorted(set(row) - _COLUMNS):
        raise SymptomsError(f"{where}: unknown column `{unknown[0]}`; there are {', '.join(sorted(_COLUMNS))}")
    if missing := sorted(_REQUIRED - set(row)):
        raise SymptomsError(f"{where}: add the column `{missing[0]}` (docs/why.md)")
    patterns, frameworks, source = row["patterns"], row.get("frameworks", []), row.get("from", OUTPUT)
    if row["kind"] not in get_args(Kind):
        raise SymptomsError(f"{where}: `kind` is one of {', '.join(get_args(Kind))}")
    if source not in (OUTPUT, LAUNCHER, PLATFORM):
        raise SymptomsError(f"{where}: `from` is one of {OUTPUT}, {LAUNCHER}, {PLATFORM}")
    for name, texts in (("patterns", patterns), ("frameworks", frameworks)):
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise SymptomsError(f"{where}: `{name}` is a list of texts")
    if not all(isinstance(row[name], str) for name in ("meaning", "look", "remedy")):
        raise SymptomsError(f"{where}: `meaning`, `look` and `remedy` are texts")
    parts = [_parts(text) for text in patterns]
    if not parts or not all(sum(map(len, each)) >= _SHORTEST_PATTERN for each in parts):
        raise SymptomsError(f"{where}: a pattern has at least {_SHORTEST_PATTERN} letters beside `*`")
    return Symptom(
        row["kind"], tuple(parts), row["meaning"], row["look"], row["remedy"], source, tuple(frameworks),
        **{name: row.get(name) is True for name in ("peer", "outside", "tested", "doubtful")},
    )  # fmt: skip


def _parts(pattern: str) -> tuple[str, ...]:
    return tuple(filter(None, pattern.lower().replace(".*", "*").split("*")))


def find_symptom(
    lines: Sequence[str], rows: Iterable[Symptom], source: str = OUTPUT, framework: str = ""
) -> FoundSymptom | None:
    """The first row that one of the last lines has; of its lines the last one. Failing that, one in all lines."""
    wanted = [
        row
        for row in rows
        if row.source == source and (not (row.frameworks and framework) or framework in row.frameworks)
    ]
    bounded = list(bound_lines(lines))
    lowered = [line.lower() for line in bounded]
    # A search of the whole text is so much faster than one of each line that few rows get there.
    text = "\n".join(lowered)
    wanted = [row for row in wanted if any(all(part in text for part in parts) for parts in row.patterns)]
    for first in dict.fromkeys((max(0, len(bounded) - _LAST_LINES), 0)):
        for row in wanted:
            for number in range(len(bounded) - 1, first - 1, -1):
                if row.matches(lowered[number]):
                    return FoundSymptom(row, bounded[number])
    return None


def bound_lines(lines: Sequence[str]) -> Iterator[str]:
    """The last lines, as far as they are read, each cut to its beginning."""
    size, kept = 0, list[str]()
    for line in reversed(lines):
        cut = line[:LONGEST_LINE]
        size += len(cut) + 1
        if size > MOST_CHARACTERS:
            break
        kept.append(cut)
    return reversed(kept)
