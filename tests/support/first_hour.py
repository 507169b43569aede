# SPDX-License-Identifier: Apache-2.0
"""The stack file of docs/first-hour.md, and how a reader moves it to another platform by following `check`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from schemas.findings import Finding
from schemas.judge import judge_file
from tests.support.pages import Block, read_sections

PAGE = Path(__file__).parents[2] / "docs" / "first-hour.md"
SCRIPTS = PAGE.with_suffix("")
_MOVING = "The same file on another platform"
_RESULT = re.compile(r"^    results/(\w+)/first/workdir/(\S+)$", re.MULTILINE)
_STACK_FILE = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
_NOT_TRAINED_THERE = "TY903"
_TYPED = re.compile(r"(add|such as) `([^`]+)`")


# It is compiled against Debian's packages, which only root can install. The page says to leave this job out without
# them.
NEEDS_ROOT = "horovod"


def blocks(without: Sequence[str] = ()) -> list[Block]:
    """The blocks that a reader types who stays on OCI, and who leaves `without` out of the stack file."""
    found = [block for section, blocks in read_sections(PAGE).items() if section != _MOVING for block in blocks]
    return [_without(block, without) if without and block.language == "yaml" else block for block in found]


def _without(block: Block, jobs: Sequence[str]) -> Block:
    stack = read_stack([job for job, _ in promised(jobs)])
    return replace(block, text=f"{block.text.splitlines()[0]}\n{yaml.safe_dump(stack, sort_keys=False)}")


def moving_blocks() -> list[Block]:
    """The blocks that move the stack file to another platform: those before the reader follows `check`, and those after
    it."""
    return read_sections(PAGE)[_MOVING]


def promised(without: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The job and the name of each result file that the page promises, except those of these jobs."""
    return [(job, file) for job, file in _RESULT.findall(PAGE.read_text("utf-8")) if job not in without]


def read_stack(jobs: Sequence[str] = ()) -> dict[str, Any]:
    """The page's stack file with these jobs only, or with all."""
    found = _STACK_FILE.search(PAGE.read_text("utf-8"))
    assert found is not None
    data: dict[str, Any] = yaml.safe_load(found[1])
    every = data["config"]["trainyard:jobs"]
    data["config"]["trainyard:jobs"] = {name: job for name, job in every.items() if not jobs or name in jobs}
    return data


def write_stack(data: dict[str, Any], file: Path) -> None:
    file.write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")


def obey_check(file: Path) -> tuple[Finding, ...]:
    """Makes all changes that one `check` of a stack file asks for, and leaves out the jobs that its platform does not
    train. Returns the output of `check`."""
    data, errors = yaml.safe_load(file.read_text("utf-8")), judge_file(file).errors
    for error in errors:
        if error.code == _NOT_TRAINED_THERE:
            del data["config"]["trainyard:jobs"][error.path[2]]
            continue
        _type(data, error)
        for job in re.findall("`([^`]+)`", error.message.partition("; likewise ")[2]):
            _type(data, replace(error, path=(*error.path[:2], job, *error.path[3:])))
    write_stack(data, file)
    return errors


def _type(data: Any, finding: Finding) -> None:
    """Adds the key that a remedy names: a key of the whole stack, or one at the place of the finding."""
    # A key inside another one, as in "add to `cluster` `ami: nvidia`".
    inner = re.match("add to `([^`]+)` (?=`)", finding.remedy)
    typed = _TYPED.search("add " + finding.remedy[inner.end() :] if inner else finding.remedy)
    assert typed is not None, finding
    snippet: dict[str, Any] = yaml.safe_load(typed[2])
    place = data["config"]
    if not all(":" in key for key in snippet):
        for step in finding.path[1:] if typed[1] == "add" else finding.path[1:-1]:
            place = place[step]
        if inner:
            place = place.setdefault(inner[1], {})
    place.update(snippet)
