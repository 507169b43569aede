# SPDX-License-Identifier: Apache-2.0
"""Mutations of stack files, like typing mistakes, wrong merges and bad generators. A seed makes them repeatable."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

Text = Callable[[Random, str], str]
_ODD = [
    "",
    "\t",
    "\x00",
    "{",
    "]",
    "&a",
    "*a",
    "!x",
    "- ",
    ": ",
    "'",
    '"',
    "|",
    ">",
    "%",
    "#",
    "\u2028",
    "é",
    "0",
    "-1",
]
_VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 10**30, "", " ", "x" * 300, "${", "${x}", "latest", "2026-01-01", "../..", "/", "\u0000",
    [], {}, [[]], {"secure": "v1:x"}, {"secure": 1}, {"": ""}, "all", "0-0", "9-1", "10.0.0.0/8", "ocid1.x.y.z.w",
]  # fmt: skip


def _lines(change: Callable[[Random, list[str]], None]) -> Text:
    def mutate(random: Random, text: str) -> str:
        lines = text.split("\n")
        change(random, lines)
        return "\n".join(lines)

    return mutate


def _drop(random: Random, lines: list[str]) -> None:
    del lines[random.randrange(len(lines))]


def _repeat(random: Random, lines: list[str]) -> None:
    lines.insert(random.randrange(len(lines)), random.choice(lines))


def _indent(random: Random, lines: list[str]) -> None:
    index = random.randrange(len(lines))
    lines[index] = random.choice([" ", "    ", "\t"]) + lines[index]


def _swap(random: Random, lines: list[str]) -> None:
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


def _insert(random: Random, text: str) -> str:
    index = random.randrange(len(text) + 1)
    return text[:index] + random.choice(_ODD) + text[index:]


def _transpose(random: Random, text: str) -> str:
    index = random.randrange(max(1, len(text) - 1))
    return text[:index] + text[index : index + 2][::-1] + text[index + 2 :]


def _cut(random: Random, text: str) -> str:
    return text[: random.randrange(len(text) + 1)]


TEXT: tuple[Text, ...] = (_lines(_drop), _lines(_repeat), _lines(_indent), _lines(_swap), _insert, _transpose, _cut)


def of_text(random: Random, text: str) -> str:
    for _ in range(random.choice([1, 1, 2, 5])):
        text = random.choice(TEXT)(random, text)
    return text


def of_values(random: Random, data: Any) -> str:
    """A file whose values were changed: one is replaced, removed, renamed or copied elsewhere."""
    data = json.loads(json.dumps(data))
    for _ in range(random.choice([1, 1, 2, 4])):
        places = list(_places(data))
        if not places:
            break
        holder, key = random.choice(places)
        match random.randrange(4):
            case 0:
                holder[key] = random.choice(_VALUES)
            case 1:
                del holder[key]
            case 2:
                other, other_key = random.choice(places)
                holder[key] = json.loads(json.dumps(other[other_key]))
            case _ if isinstance(holder, dict):
                holder[_misspelled(random, key)] = holder.pop(key)
    return json.dumps(data, ensure_ascii=False)


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    keys = data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in keys:
        yield data, key
        yield from _places(data[key])


def _misspelled(random: Random, word: str) -> str:
    index = random.randrange(len(word) + 1)
    return word[:index] + random.choice("abcXYZ:-_ ") + word[index + random.randrange(2) :]
