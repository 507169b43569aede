# SPDX-License-Identifier: Apache-2.0
"""Checks of commands: the launcher runs them without a shell, and starts the processes itself.

Commands that a shell reads are not checked.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import lru_cache

from catalog import frameworks
from catalog.frameworks.validation import OF_A_NODE, OF_A_PROCESS, OF_TENSORFLOW
from schemas.facts import Facts
from schemas.findings import Path, Wrong, at, rule
from schemas.model import Job, Stack
from schemas.name_suggestions import count_noun

_OPERATORS = frozenset({"|", "||", "&&", "&", ";", "<", ">", ">>", "2>", "2>&1", "&>"})
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_LITERAL = re.compile(r"'[^']*'")
_VARIABLE = re.compile(r"\$(?:\(|[A-Za-z_][A-Za-z0-9_]*)")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
# A placeholder that the launcher fills in. `${name}` is a reference, which the plan fills in earlier.
_PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+(?:\.[A-Za-z0-9_-]+)?)\}")
_ADDRESSES = ("address", "addresses")
_PYTHON = re.compile(r"python[0-9.]*")
_SHELLS = frozenset({"bash", "sh", "/bin/bash", "/bin/sh"})
# Units of a duration in a command -> minutes in one of them.
_UNITS = {"s": 1 / 60, "m": 1.0, "h": 60.0, "d": 1440.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)")
_LIMITS = {
    f"--{prefix}{joint}{unit}": minutes
    for prefix in ("max", "train", "time-limit")
    for joint in ("-", "_")
    for unit, minutes in (("seconds", 1 / 60), ("minutes", 1.0), ("hours", 60.0), ("days", 1440.0))
}


def job_commands(name: str, job: Job) -> Iterator[tuple[Path, str]]:
    """The job's command and the commands of its roles, each with its path."""
    yield at("jobs", name, "command"), job.command
    for role, part in job.roles.items():
        if part.command is not None:
            yield at("jobs", name, "roles", role, "command"), part.command


def _without_shell(stack: Stack) -> Iterator[tuple[str, Job]]:
    return ((name, job) for name, job in stack.jobs.items() if not job.by_shell)


@lru_cache(maxsize=64)
def command_words(command: str) -> tuple[str, ...]:
    """The words of a command. Empty if it cannot be split, which TY810 reports."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()


@rule("TY818", "a launcher inside the launcher", severity="warning")
def launcher_inside(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in _without_shell(stack):
        framework = facts.framework(job)
        for where, command in job_commands(name, job):
            program = _started_program(command_words(command))
            # A command that passes the other nodes in placeholders starts its launcher on purpose.
            if framework is None or "{nodes}" in command or "{address" in command:
                continue
            if program in framework.stands_for:
                message = f"trainyard already does what `{program}` does: with both, each process trains alone"
                yield Wrong(
                    where, message, "name the training script itself; the option `processes` sets how many a node runs"
                )
            elif other := _other_framework(program, job, facts):
                message = f"`{program}` starts processes of {other}, and trainyard starts this job's as {job.framework}"
                yield Wrong(where, message, f"name the training script itself, with `framework: {other}`")


def _other_framework(program: str, job: Job, facts: Facts) -> str | None:
    """Another built-in framework with this launcher. Own frameworks of teams may start any program."""
    if job.framework in facts.own_frameworks:
        return None
    names = (name for name in facts.framework_names() if name not in (job.framework, *facts.own_frameworks))
    return next((name for name in names if program in frameworks.framework_document(name).get("stands_for", ())), None)


def _started_program(words: tuple[str, ...]) -> str:
    """The program that a command starts, for `/opt/bin/torchrun` and for `python -m torch.distributed.run`."""
    if len(words) > 2 and _PYTHON.fullmatch(words[0].rpartition("/")[2]) and words[1] == "-m":
        return words[2]
    return words[0].rpartition("/")[2] if words else ""


@rule("TY819", "a command that only a shell would understand")
def needs_shell(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in _without_shell(stack):
        for where, command in job_commands(name, job):
            syntax = _shell_syntax(command)
            if not syntax:
                continue
            remedy = "write `bash -c '…'`, or a script of your own"
            if syntax.endswith("="):
                remedy = f"set {syntax.removesuffix('=')} under `env`, and begin with the script"
            elif syntax.startswith("$") and syntax != "$(":
                remedy = (
                    f"read {syntax} in the script, or write `bash -c '…'`; in single quotes it is the text that it is"
                )
            yield Wrong(where, f"`{syntax[:40]}` works in a shell only, and no shell reads the command", remedy)


@rule("TY828", "an argument that is the name of a variable", severity="warning")
def named_variable(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for run, entry in job.runs.items():
            for index, word in enumerate(entry.args):
                if _VARIABLE.fullmatch(word):
                    message = f"the script gets the text `{word}`: no shell reads the arguments"
                    remedy = "read the variable in the script; nothing to do if you mean this text itself"
                    yield Wrong(at("jobs", name, "runs", run, "args", index), message, remedy)


def _shell_syntax(command: str) -> str | None:
    words = command_words(command)
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


@rule("TY824", "an unknown placeholder")
def unknown_placeholder(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in _without_shell(stack):
        framework = facts.framework(job)
        # The commands of another system are not filled in: a shell reads their braces.
        if framework is None or job.speaks:
            continue
        answered = {*OF_A_NODE, *OF_A_PROCESS, *(OF_TENSORFLOW if framework.name == "tensorflow" else ())}
        answered |= {f"{key}.{role}" for role, spec in job.roles.items() if spec.replicas for key in _ADDRESSES}
        for where, words in _all_words(name, job):
            unknown = (name for word in words for name in _PLACEHOLDER.findall(word) if name not in answered)
            if (placeholder := next(unknown, None)) is not None:
                message = f"`{{{placeholder}}}` is not a placeholder that the launcher knows: no node would start"
                remedy = "use one that docs/launcher.md lists; a command cannot have other words in braces"
                yield Wrong(where, message, remedy)


@rule("TY820", "a run that is stopped before it can finish", severity="warning")
def ended_early(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        most = job.maximum_runtime_minutes
        for where, words in _all_words(name, job):
            minutes = _minutes_in(words)
            if minutes is not None and minutes > most:
                message = f"asks for {count_noun(round(minutes), 'minute')}, but the run is stopped after {most}"
                yield Wrong(where, message, f"set `maximumRuntimeMinutes: {round(minutes) + 30}`, or request less")


def _all_words(name: str, job: Job) -> Iterator[tuple[Path, tuple[str, ...]]]:
    for where, command in job_commands(name, job):
        yield where, command_words(command)
    for run, entry in job.runs.items():
        yield at("jobs", name, "runs", run, "args"), entry.args


def _minutes_in(words: tuple[str, ...]) -> float | None:
    """The time in minutes, from `timeout 5h train.py`, `--max-hours 48` or `--max-minutes=90`."""
    if words[:1] == ("timeout",):
        match = next((limit for word in words[1:] if (limit := _DURATION.fullmatch(word))), None)
        return float(match[1]) * _UNITS[match[2] or "s"] if match else None
    for word, following in zip(words, [*words[1:], ""], strict=False):
        option, _, value = word.partition("=")
        number = _DURATION.fullmatch(value or following)
        if option in _LIMITS and number and not number[2]:
            return float(number[1]) * _LIMITS[option]
    return None
