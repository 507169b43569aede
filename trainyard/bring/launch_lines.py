# SPDX-License-Identifier: Apache-2.0
"""Finds the lines that start a training script, in shell scripts, documentation and the script's own comments, and
reads what they say: launcher, nodes, processes and arguments. Nothing is run. The programs and their options are rows
of catalog/first_stacks.toml.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catalog.secret_looks import gives_secret, looks_secret
from catalog.tables import table

_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(\"[^\"$`]*\"|'[^']*'|[^\s\"'$`();|&]*)\s*(?:#.*)?")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_NEEDS_SHELL = re.compile(r"[$`]|[*?]$")
# `2` of `--nnodes=2`; `4` of `--nnodes=2:4`, which is elastic.
_NODES = re.compile(r"(?:\d+:)?(\d{1,4})")
_ENDS = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "2>", "2>&1", "&>", "<"})
# As a program's last word before the script: `python -m package.train`.
_MODULE = ("-m", "--module")
# A line is joined to the one before up to this length.
_LONGEST_LINE = 20_000


@dataclass(frozen=True, slots=True)
class LaunchLine:
    """A line that starts a script. `launchers`: the programs in it, from the left. `per_accelerator`: it asks for one
    process for each accelerator. `left_out`: arguments that only the line's own shell knows. `has_secret`: an argument
    that looks like a secret is left out, too.
    """

    file: str
    line: int
    launchers: tuple[str, ...]
    script: str
    arguments: tuple[str, ...] = ()
    as_module: bool = False
    nodes: int | None = None
    processes: int | None = None
    per_accelerator: bool = False
    gpus: bool = False
    framework: str | None = None
    left_out: tuple[str, ...] = ()
    has_secret: bool = False

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass
class _Options:
    """What the options of a line's launchers say."""

    nodes: int | None = None
    processes: int | None = None
    total: int | None = None
    per_accelerator: bool = False
    gpus: bool = False
    framework: str | None = None
    launchers: list[str] = field(default_factory=list)


def find_launch_lines(text: str, file: str) -> Iterator[LaunchLine]:
    """The lines of a text that start a Python script by a launcher, in order.

    Variables that the text sets to constants are filled in. Options in headers, such as `#SBATCH --nodes=2`, count for
    every line.
    """
    constants: dict[str, str] = {}
    header = list[str]()
    for number, line in _joined_lines(text):
        if (assigned := _ASSIGNMENT.fullmatch(line)) is not None:
            constants[assigned[1]] = assigned[2].strip("\"'")
            continue
        for word, launcher in table("first_stacks")["headers"].items():
            if line.startswith(f"#{word} "):
                header += [launcher, *_split_words(line.removeprefix(f"#{word} "))]
        # As pages, comments and docstrings show a line.
        shown = line.replace('"""', "").lstrip("$>#% ").strip("`")
        words = [
            _VARIABLE.sub(lambda named: constants.get(named[1] or named[2], named[0]), word)
            for word in _split_words(shown)
        ]
        if found := read_launch_line(words, file, number, header):
            yield found


def read_launch_line(words: Sequence[str], file: str, line: int, header: Sequence[str] = ()) -> LaunchLine | None:
    """What the words of one line say. None if they start no Python script by a known launcher."""
    words = list(words)
    # A variable in front, as in `OMP_NUM_THREADS=4 torchrun …`.
    while words and (words[0] in ("env", "exec", "nohup", "time", "sudo") or re.match(r"[A-Za-z_]\w*=", words[0])):
        words.pop(0)
    if not words or _launcher_named(words[0]) is None:
        return None
    end = next((place for place, word in enumerate(words) if word in _ENDS or word.endswith(";")), len(words))
    words = [word.removesuffix(";") for word in words[: end + (end < len(words) and words[end] not in _ENDS)]]
    place = _place_of_script(words)
    if place is None:
        return None
    said = _Options()
    _read_options(header, said)
    _read_options(words[:place], said)
    as_module = words[place - 1] in _MODULE
    kept, left_out = list[str](), list[str]()
    arguments, secrets = words[place + 1 :], False
    for word, before in zip(arguments, ["", *arguments], strict=False):
        if looks_secret(word) or gives_secret(before, word) or gives_secret(word, ""):
            # A stack file is for everybody: neither the secret nor its option gets into it.
            if kept and kept[-1] == before and before.startswith("-") and not word.startswith("-"):
                kept.pop()
            secrets = True
            continue
        if not _NEEDS_SHELL.search(word):
            kept.append(word)
            continue
        # The value of an option takes the option with it: `--data "$DATA"`.
        if kept and kept[-1].startswith("--") and "=" not in kept[-1]:
            left_out.append(kept.pop())
        left_out.append(word)
    processes = said.processes
    if processes is None and said.total is not None:
        processes = max(1, said.total // (said.nodes or 1))
    return LaunchLine(
        file, line, tuple(dict.fromkeys(said.launchers)), words[place], tuple(kept), as_module,
        nodes=said.nodes, processes=processes, per_accelerator=said.per_accelerator, gpus=said.gpus,
        framework=said.framework, left_out=tuple(left_out), has_secret=secrets,
    )  # fmt: skip


def _place_of_script(words: Sequence[str]) -> int | None:
    """The first word that is a Python script, or a module that is not a launcher itself."""
    for place, word in enumerate(words):
        if place and word.endswith(".py"):
            return place
        if place and words[place - 1] in _MODULE and _launcher_named(word) is None and not word.startswith("-"):
            return place
    return None


def _read_options(words: Sequence[str], said: _Options) -> None:
    row: Mapping[str, Any] = {}
    for place, word in enumerate(words):
        if launcher := _launcher_named(word):
            row = table("first_stacks")["launchers"][launcher]
            said.launchers.append(launcher)
            said.gpus |= bool(row.get("gpus"))
            said.framework = row.get("framework", said.framework)
            continue
        option, equals, value = word.partition("=")
        if not equals:
            # `-N2` of srun
            if not option.startswith("--") and re.fullmatch(r"-[A-Za-z]\d+", option):
                option, value = option[:2], option[2:]
            else:
                value = words[place + 1] if place + 1 < len(words) else ""
        said.gpus |= option in row.get("gpu_options", ())
        number = _NODES.fullmatch(value)
        if option in row.get("nodes", ()) and number:
            said.nodes = int(number[1])
        elif option in row.get("total", ()) and number:
            said.total = int(number[1])
        elif option in row.get("processes", ()):
            if number:
                said.processes = max(said.processes or 1, int(number[1]))
            else:
                said.per_accelerator = True


def _launcher_named(word: str) -> str | None:
    """The launcher that a word starts, for `/opt/bin/torchrun` and `torch.distributed.run`."""
    program = re.sub(r"^(python)[0-9.]+$", r"\1", word.rpartition("/")[2])
    rows: Mapping[str, Any] = table("first_stacks")["launchers"]
    return next((name for name, row in rows.items() if program == name or program in row.get("also", ())), None)


def _split_words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


def _joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text, each with its number. A backslash at the end of a line joins the next one to it."""
    held, first = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        first = first if held else number
        held += line.strip()
        if held.endswith("\\") and len(held) < _LONGEST_LINE:
            held = held[:-1] + " "
            continue
        yield first, held
        held = ""
    if held:
        yield first, held
