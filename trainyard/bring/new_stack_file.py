# SPDX-License-Identifier: Apache-2.0
"""The text of a new stack file, from scripts and from a platform's keys. Pure: what it writes is for the caller."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from catalog.frameworks import Framework
from components.platform.new_stacks import MachineNeeds, NewStacks
from schemas.name_suggestions import count_noun
from trainyard.bring.training_scripts import REQUIREMENTS, TrainingScript

# Ports of a second framework in the same subnet begin this many numbers later.
_PORT_STEP = 400
_HEAD = """\
# Written by `trainyard init`. `trainyard check` explains what is wrong with a key, and docs/frameworks.md lists
# frameworks, roles and options.
"""


@dataclass(frozen=True, slots=True)
class NewStackFile:
    """`keys`: of the whole stack, in order. `comments`: by key. `jobs`: job -> its keys, and `notes` on each."""

    keys: Mapping[str, Any]
    comments: Mapping[str, str]
    jobs: Mapping[str, Mapping[str, Any]]
    notes: Mapping[str, tuple[str, ...]]

    @property
    def jobs_in_words(self) -> str:
        words = []
        for name, job in self.jobs.items():
            strategy = f"/{job['strategy']}" if "strategy" in job else ""
            nodes = count_noun(sum(job["roles"].values()), "node")
            words.append(f"job {name} with {job['framework']}{strategy}, {nodes}")
        return "; ".join(words) or "without a job"

    @property
    def text(self) -> str:
        return "\n".join([_HEAD + "config:", *self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        before = ""
        for key, value in self.keys.items():
            comment = self.comments.get(key, "")
            if comment and comment != before:
                yield f"  # {_printable_comment(comment)}"
            before = comment
            yield f"  {key}: {_in_one_line(value)}"
        if self.jobs:
            yield "  trainyard:jobs:"
        for name, job in self.jobs.items():
            yield f"    {name}:"
            yield from (f"      # {_printable_comment(note)}" for note in self.notes.get(name, ()))
            yield from (f"      {key}: {_in_one_line(value)}" for key, value in job.items())


def named_apart(scripts: Sequence[TrainingScript]) -> list[TrainingScript]:
    """The same scripts, each with a name of its own."""
    taken, apart = set[str](), list[TrainingScript]()
    for script in scripts:
        name, number = script.name, 1
        while name in taken:
            number += 1
            name = f"{script.name}-{number}"
        taken.add(name)
        apart.append(replace(script, name=name))
    return apart


def new_stack_file(
    named: Mapping[str, str],
    keys: Mapping[str, Any],
    comments: Mapping[str, str],
    scripts: Sequence[TrainingScript],
    platform: NewStacks,
    folder: Path,
) -> NewStackFile:
    """`named`: team and environment. `folder`: where the file will be. Requirements that nothing lists are expected in
    a new file beside the script."""
    jobs, notes = dict[str, Mapping[str, Any]](), dict[str, tuple[str, ...]]()
    further: dict[str, Any] = {}
    seen: list[Framework] = []
    for script in scripts:
        machine = platform.choose_machine(MachineNeeds(script.gpus, script.processes, script.per_accelerator))
        for key, value in machine.stack.items():
            further[key] = {**further.get(key, {}), **value}
        framework, roles = script.framework, script.role_counts
        options: dict[str, Any] = dict(script.options)
        if framework.processes and machine.processes != framework.options[framework.processes].default:
            most = framework.options[framework.processes].maximum
            options[framework.processes] = machine.processes if most is None else int(min(most, machine.processes))
            if options[framework.processes] == framework.options[framework.processes].default:
                del options[framework.processes]
        own_ports = {port.default for port in framework.ports if port.default != "all"}
        sharing = [
            other
            for other in seen
            if other.name != framework.name and own_ports & {port.default for port in other.ports}
        ]
        ports = _moved_ports(framework, _PORT_STEP * len(sharing)) if sharing else {}
        if framework.name not in {other.name for other in seen}:
            seen.append(framework)
        code = _path_from(folder, script.folder)
        lists = script.requirements is not None or bool(script.missing)
        requirements = _path_from(folder, script.folder / REQUIREMENTS) if lists else None
        strategy = {"strategy": framework.strategy} if len(framework.strategies) > 1 else {}
        jobs[script.name] = {
            "framework": framework.name,
            **strategy,
            "image": platform.image(f"{script.name}-1.0" if len(scripts) > 1 else "1.0"),
            **machine.job,
            "roles": roles,
            **({"options": options} if options else {}),
            **({"ports": ports} if ports else {}),
            "code": code,
            **({"requirements": requirements} if requirements else {}),
            "command": shlex.join(script.command),
            "runs": {"first": {}},
        }
        why = f"Concluded from: {'; '.join(script.reasons)}." if script.reasons else ""
        needed = ", ".join(script.arguments_needed)
        add = f"Add to `command` the arguments that {script.command[0]} needs: {needed}." if needed else ""
        alternative = "" if any(machine.comment in of_job for of_job in notes.values()) else machine.comment
        notes[script.name] = tuple(filter(None, (why, *script.remarks, add, alternative)))
    # Region, platform, team and environment first, as in every example.
    first = {key: value for key, value in keys.items() if not key.startswith("trainyard:") or key.endswith(":platform")}
    own = {f"trainyard:{key}": value for key, value in named.items()}
    whole = {**first, **own, **{key: value for key, value in keys.items() if key not in first}, **further}
    return NewStackFile(whole, comments, jobs, notes)


def _moved_ports(framework: Framework, shift: int) -> dict[str, int | str]:
    moved: dict[str, int | str] = {}
    for port in framework.ports:
        if port.default == "all":
            continue
        first, _, last = str(port.default).partition("-")
        moved[port.label] = f"{int(first) + shift}-{int(last) + shift}" if last else int(first) + shift
    return moved


def _path_from(folder: Path, path: Path) -> str:
    relative = Path(os.path.relpath(os.path.realpath(path), os.path.realpath(folder))).as_posix()
    return relative if relative.startswith(".") else f"./{relative}"


def _printable_comment(text: str) -> str:
    """A comment on one line, whatever a script or a configuration says."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _in_one_line(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
