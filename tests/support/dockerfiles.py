# SPDX-License-Identifier: Apache-2.0
"""Reads Dockerfiles, as far as the tests need it: instructions by stage, with arguments filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_REFERENCE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True)
class Instruction:
    word: str
    rest: str


@dataclass
class Stage:
    """One FROM and what follows it; `known` are the arguments that may be used in it."""

    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)

    def all(self, word: str) -> list[str]:
        return [_filled(one.rest, self.known) for one in self.instructions if one.word == word]


@dataclass(frozen=True)
class Dockerfile:
    arguments: Mapping[str, str]
    stages: tuple[Stage, ...]

    @property
    def declared(self) -> set[str]:
        """Every argument that a builder may be given."""
        return set(self.arguments).union(*(stage.known for stage in self.stages))


def read(file: Path, given: Mapping[str, str]) -> Dockerfile:
    """A Dockerfile with the arguments given on a builder's command line."""
    top: dict[str, str] = {}
    stages: list[Stage] = []
    for one in _instructions(file.read_text("utf-8")):
        if one.word == "ARG":
            name, has_default, default = one.rest.partition("=")
            value = given.get(name, default.strip('"') if has_default else top.get(name))
            if value is None:
                raise ValueError(f"{file}: ARG {name} has no value")
            (stages[-1].known if stages else top)[name] = value
        elif one.word == "FROM":
            base, _, name = one.rest.partition(" AS ")
            stages.append(Stage(_filled(base, top), name))
        else:
            stages[-1].instructions.append(one)
    return Dockerfile(top, tuple(stages))


def _instructions(text: str) -> Iterator[Instruction]:
    kept = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in kept.replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word:
            yield Instruction(word, rest.strip())


def _filled(text: str, known: Mapping[str, str]) -> str:
    """Fills in arguments. One that the stage does not declare would be empty in a build; here it is an error."""
    return _REFERENCE.sub(lambda match: known[match[1]], text)
