# SPDX-License-Identifier: Apache-2.0
"""Checks of what nodes are to run: no shell reads a command, and the launcher starts the processes itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import lru_cache

from catalog.frameworks.sound import OF_A_NODE, OF_A_PROCESS, OF_TENSORFLOW
from schemas.checks.registry import Wrong, at, rule
from schemas.facts import Facts
from schemas.findings import Path
from schemas.model import Job, Stack
from schemas.names import plural

_OPERATORS = frozenset({"|", "||", "&&", "&", ";", "<", ">", ">>", "2>", "2>&1", "&>"})
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_LITERAL = re.compile(r"'[^']*'")
_VARIABLE = re.compile(r"\$(?:\(|[A-Za-z_][A-Za-z0-9_]*)")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
# As the launcher sees it; `${name}` is a reference, which the plan has filled in by then.
_PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+(?:\.[A-Za-z0-9_-]+)?)\}")
_ADDRESSES = ("address", "addresses")
_PYTHON = re.compile(r"python[0-9.]*")
_SHELLS = frozenset({"bash", "sh", "/bin/bash", "/bin/sh"})
# How the words of a command say how long training takes -> minutes in one of them.
_UNITS = {"s": 1 / 60, "m": 1.0, "h": 60.0, "d": 1440.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)")
_LIMITS = {
    f"--{prefix}{joint}{unit}": minutes
    for prefix in ("max", "train", "time-limit")
    for joint in ("-", "_")
    for unit, minutes in (("seconds", 1 / 60), ("minutes", 1.0), ("hours", 60.0), ("days", 1440.0))
}


def commands(name: str, job: Job) -> Iterator[tuple[Path, str]]:
    """The job's command and those of its roles, with their places."""
    yield at("jobs", name, "command"), job.command
    for role, part in job.roles.items():
        if part.command is not None:
            yield at("jobs", name, "roles", role, "command"), part.command


@lru_cache(maxsize=64)
def words_of(command: str) -> tuple[str, ...]:
    """The words of a command; none where it cannot be split (TY810 says so)."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()


@rule("TY818", "a launcher inside the launcher", severity="warning")
def launcher_inside(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        framework = facts.framework(job)
        for where, command in commands(name, job) if framework else ():
            program = _program(words_of(command))
            # Whoever tells it the other nodes by placeholders knows what it does.
            told = "{nodes}" in command or "{address" in command
            if framework and program in framework.stands_for and not told:
                message = f"`{program}` starts and numbers processes, which trainyard does already: each would be alone"
                yield Wrong(where, message, "name the training script itself; `processes` says how many a node runs")


def _program(words: tuple[str, ...]) -> str:
    """What is run: `/opt/bin/torchrun`, `python -m torch.distributed.run`."""
    if len(words) > 2 and _PYTHON.fullmatch(words[0].rpartition("/")[2]) and words[1] == "-m":
        return words[2]
    return words[0].rpartition("/")[2] if words else ""


@rule("TY819", "a command that only a shell would understand")
def needs_shell(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for where, command in commands(name, job):
            found = _of_a_shell(command)
            if found:
                message = f"`{found[:40]}` is for a shell, and none reads the command: the program gets it as it stands"
                yield Wrong(where, message, _instead_of_shell(found))
        for run, one in job.runs.items():
            for index, word in enumerate(one.args):
                if _VARIABLE.fullmatch(word):
                    message = f"`{word}` is not filled in: no shell reads the arguments"
                    yield Wrong(
                        at("jobs", name, "runs", run, "args", index), message, "read the variable in the script"
                    )


def _of_a_shell(command: str) -> str | None:
    words = words_of(command)
    if not words or words[0] in _SHELLS:
        return None
    if _ASSIGNMENT.match(words[0]):
        return words[0].partition("=")[0] + "="
    bare = _QUOTED.sub("", command).split()
    operator = next((word for word in bare if word in _OPERATORS or word.endswith(";")), None)
    if operator:
        # The word itself may be a secret.
        return operator if operator in _OPERATORS else ";"
    variable = _VARIABLE.search(_LITERAL.sub("", command))
    return variable[0] if variable else None


def _instead_of_shell(found: str) -> str:
    if found.endswith("="):
        return f"set {found.removesuffix('=')} under `env`, and begin with the script"
    if found.startswith("$") and found != "$(":
        return f"read {found} in the script, or write `bash -c '…'`"
    return "write `bash -c '…'`, or a script of your own"


@rule("TY824", "a placeholder that nothing answers")
def unanswered(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        framework = facts.framework(job)
        if framework is None:
            continue
        known = {*OF_A_NODE, *OF_A_PROCESS, *(OF_TENSORFLOW if framework.name == "tensorflow" else ())}
        known |= {f"{kind}.{role}" for role, spec in job.roles.items() if spec.replicas for kind in _ADDRESSES}
        for where, words in _all_words(name, job):
            asked = (found for word in words for found in _PLACEHOLDER.findall(word) if found not in known)
            if (placeholder := next(asked, None)) is not None:
                message = f"`{{{placeholder}}}` is a placeholder that nothing answers: no node would start"
                remedy = "docs/launcher.md lists them; other words in braces cannot be given to a command"
                yield Wrong(where, message, remedy)


@rule("TY820", "a run that is ended before it can be done", severity="warning")
def ended_early(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        most = job.maximum_runtime_minutes
        for where, words in _all_words(name, job):
            wanted = _minutes_said(words)
            if wanted is not None and wanted > most:
                message = f"asks for {plural(round(wanted), 'minute')}, and the run is ended after {most}"
                yield Wrong(where, message, f"set `maximumRuntimeMinutes: {round(wanted) + 30}`, or ask for less")


def _all_words(name: str, job: Job) -> Iterator[tuple[Path, tuple[str, ...]]]:
    for where, command in commands(name, job):
        yield where, words_of(command)
    for run, one in job.runs.items():
        yield at("jobs", name, "runs", run, "args"), one.args


def _minutes_said(words: tuple[str, ...]) -> float | None:
    """`timeout 5h train.py`, `--max-hours 48`, `--max-minutes=90`."""
    if words[:1] == ("timeout",):
        match = next((found for word in words[1:] if (found := _DURATION.fullmatch(word))), None)
        return float(match[1]) * _UNITS[match[2] or "s"] if match else None
    for word, following in zip(words, [*words[1:], ""], strict=False):
        option, _, value = word.partition("=")
        number = _DURATION.fullmatch(value or following)
        if option in _LIMITS and number and not number[2]:
            return float(number[1]) * _LIMITS[option]
    return None
