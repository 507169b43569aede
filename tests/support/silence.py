# SPDX-License-Identifier: Apache-2.0
"""Changes that a review must not pass in silence: one row each, in the modules of `silent_changes`, and what reviews
them by the command.

Rows that change stack files share one repository, and rows that add to the program another one: each row has a stack of
its own there. A row that changes other files gets a repository of its own.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from tests.support.checkout_copies import Checkout
from tests.support.examples import STACKS
from tests.support.review_examples import AWS, CIPHERTEXT, OCI, PAI, git
from trainyard.review.gates import GATE_NAMES

TOPICS = tuple(sorted(file.stem for file in Path(__file__).parent.joinpath("silent_changes").glob("[!_]*.py")))
SILENT = "nothing to decide"
Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SilentChange:
    """`number`: of the attempts by which this list began. `shows`: texts of the first screen of the review.

    `stays_silent`: the other way round: a change without meaning, of which the review must make nothing.

    `before` prepares the stack file; `change` changes it. `program` is code that runs at the end of the program, after
    the change. `files` changes the repository around the stack. `trips`: the gates that must trip. `passes`: those that
    must not. `is_new`: the stack file is new.
    """

    number: int
    title: str
    shows: tuple[str, ...]
    stack: str = OCI
    before: Callable[[Document], object] = bool
    change: Callable[[Document], object] = bool
    program: str = ""
    files: Callable[[Path], object] | None = None
    trips: frozenset[str] = frozenset()
    passes: frozenset[str] = frozenset()
    is_new: bool = False
    stays_silent: bool = False

    @property
    def stack_name(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def changes_of_topic(topic: str) -> tuple[SilentChange, ...]:
    found: tuple[SilentChange, ...] = import_module(f"tests.support.silent_changes.{topic}").CHANGES
    return found


def what_is_silent(changes: Iterable[SilentChange], folder: Path) -> Iterator[str]:
    """What the reviews of these changes do not say, in words."""
    rows = list(changes)
    together = [row for row in rows if not row.files and not row.program]
    in_program = [row for row in rows if row.program]
    if together:
        yield from _missing_in_reviews(together, _repository_of_stacks(folder / "stack-files", together))
    if in_program:
        yield from _missing_in_reviews(in_program, _repository_of_program(folder / "program", in_program))
    for row in rows:
        if row.files:
            repository = _repository_of_stacks(folder / row.stack_name, [row])
            row.files(repository)
            yield from _missing_in_reviews([row], repository)


def review_of_stacks(rows: Iterable[SilentChange], folder: Path) -> list[Mapping[str, Any]]:
    """The reviews of rows that change stack files, as JSON has them."""
    repository = _repository_of_stacks(folder, list(rows))
    first_screens(repository)
    reviews: list[Mapping[str, Any]] = json.loads((repository / "review.json").read_text("utf-8"))["reviews"]
    return reviews


def screens_of_program(rows: Iterable[SilentChange], folder: Path) -> Mapping[str, str]:
    """By title: what the reviews of rows that add to the program say."""
    listed = list(rows)
    screens, _ = first_screens(_repository_of_program(folder / "program", listed))
    return {row.title: screens[row.stack_name] for row in listed}


def _repository_of_stacks(folder: Path, rows: Iterable[SilentChange]) -> Path:
    _write_stacks(folder, [row for row in rows if not row.is_new])
    _commit_all(folder)
    _write_stacks(folder, [row for row in rows if row.is_new])
    _change_stacks(folder, rows)
    return folder


def _repository_of_program(folder: Path, rows: Iterable[SilentChange]) -> Path:
    """A clone of the product whose program has these additions."""
    folder.mkdir()
    root = Checkout(folder).root
    for stack in (root / "stacks").glob("Pulumi.*.yaml"):
        stack.unlink()
    (root / ".venv").unlink()
    _write_stacks(root, rows)
    _commit_all(root)
    program = root / "components" / "program.py"
    added = {row.stack_name: row.program for row in rows}
    program.write_text(
        program.read_text("utf-8").replace("\ndef run(", "\ndef _run_plain(")
        + f"\n\n_ADDED = {added!r}\n\n\ndef run() -> None:\n    _run_plain()\n"
        "    exec(_ADDED.get(pulumi.get_stack(), ''), {'pulumi': pulumi})\n",
        "utf-8",
    )
    _change_stacks(root, rows)
    return root


def _write_stacks(folder: Path, rows: Iterable[SilentChange]) -> None:
    (folder / "stacks").mkdir(parents=True, exist_ok=True)
    if not (folder / "stacks" / "examples").exists():
        shutil.copytree(STACKS / "examples", folder / "stacks" / "examples")
    for row in rows:
        document = yaml.safe_load((STACKS / f"Pulumi.{row.stack}.yaml").read_text("utf-8"))
        if row.stack == PAI:
            document["config"]["trainyard:cluster"]["token"] = {"secure": CIPHERTEXT}
        row.before(document)
        stack_file(folder, row).write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")


def _change_stacks(folder: Path, rows: Iterable[SilentChange]) -> None:
    for row in rows:
        file = stack_file(folder, row)
        document = yaml.safe_load(file.read_text("utf-8"))
        row.change(document)
        file.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")


def stack_file(folder: Path, row: SilentChange) -> Path:
    return folder / "stacks" / f"Pulumi.{row.stack_name}.yaml"


def _commit_all(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "before")


def first_screens(repository: Path) -> tuple[Mapping[str, str], Mapping[str, set[str]]]:
    """By stack: what the review says of it, and the gates that it trips. Every gate is asked for."""
    # A clone of the product reviews itself.
    home = repository if (repository / "trainyard" / "__main__.py").is_file() else STACKS.parent
    gates = ",".join("cost=100000" if name == "cost" else name for name in GATE_NAMES)
    text, data = repository / "review.txt", repository / "review.json"
    command = [sys.executable, "-m", "trainyard", "review", "--stacks", str(repository / "stacks"), "--all"]
    command += ["--against", "HEAD", "--on", "2026-11-26", "--fail-on", gates]
    done = subprocess.run(
        [*command, "--output", str(text), "--output", str(data)], cwd=home, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    document = json.loads(data.read_text("utf-8"))
    tripped: dict[str, set[str]] = {}
    for gate in document["gates"]:
        tripped.setdefault(gate["stack"], set()).add(gate["gate"])
    named = [review["stack"] for review in document["reviews"]]
    everywhere = tripped.pop("", set())
    tripped = {stack: tripped.get(stack, set()) | everywhere for stack in named}
    return _texts_by_stack(text.read_text("utf-8"), named, document["repository"]["decisions"]), tripped


def _texts_by_stack(text: str, named: list[str], beside: bool) -> dict[str, str]:
    """`beside`: whether the first line is about what lies beside the stacks."""
    verdicts = text.splitlines()[beside : beside + len(named)]
    found = dict(zip(named, verdicts, strict=True))
    if len(named) == 1:
        return {named[0]: text}
    stack = ""
    for line in text.splitlines()[beside + len(named) :]:
        if line.startswith("gate "):
            break
        stack = line if line in found else stack
        if stack:
            found[stack] += f"\n{line}"
    return found


def _missing_in_reviews(rows: Iterable[SilentChange], repository: Path) -> Iterator[str]:
    screens, tripped = first_screens(repository)
    for row in rows:
        screen = screens[row.stack_name]
        if (SILENT in screen.partition("\n")[0]) != row.stays_silent:
            yield f"{row.number} {row.title}: {'not ' if row.stays_silent else ''}silent: {screen}"
        for text in row.shows:
            if text not in screen:
                yield f"{row.number} {row.title}: does not say {text!r}:\n{screen}"
        passes = frozenset(GATE_NAMES) if row.stays_silent else row.passes
        if alarms := passes & tripped.get(row.stack_name, set()):
            yield f"{row.number} {row.title}: trips {', '.join(sorted(alarms))}:\n{screen}"
        if missing := row.trips - tripped.get(row.stack_name, set()):
            yield f"{row.number} {row.title}: does not trip {', '.join(sorted(missing))}:\n{screen}"


__all__ = ["AWS", "OCI", "PAI", "SilentChange", "changes_of_topic", "what_is_silent"]
