# SPDX-License-Identifier: Apache-2.0
"""The jobs of training scripts, on a platform."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from catalog.frameworks import Framework
from catalog.tables import table
from components.platform.new_stacks import MachineNeeds, NewStacks
from schemas.name_suggestions import count_noun
from trainyard.bring.training_scripts import REQUIREMENTS, TrainingScript

# Ports of a second framework in the same subnet begin this many numbers later.
_PORT_STEP = 400


@dataclass(frozen=True, slots=True)
class ScriptJobs:
    """`jobs`: job -> its keys, and `notes` on each. `stack`: keys of the whole stack that go with them."""

    jobs: Mapping[str, Mapping[str, Any]]
    notes: Mapping[str, tuple[str, ...]]
    stack: Mapping[str, Mapping[str, Any]]

    @property
    def in_words(self) -> str:
        words = []
        for name, job in self.jobs.items():
            strategy = f"/{job['strategy']}" if "strategy" in job else ""
            nodes = count_noun(sum(job["roles"].values()), "node")
            words.append(f"job {name} with {job['framework']}{strategy}, {nodes}")
        return "; ".join(words) or "without a job"


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


def jobs_of_scripts(scripts: Sequence[TrainingScript], platform: NewStacks, folder: Path) -> ScriptJobs:
    """`folder`: where the stack file will be. Requirements that nothing lists are expected in a new file beside the
    script."""
    jobs, notes = dict[str, Mapping[str, Any]](), dict[str, tuple[str, ...]]()
    further: dict[str, dict[str, Any]] = {}
    seen: list[Framework] = []
    with_gpu = platform.choose_machine(MachineNeeds(gpus=1))
    keys_with_gpu = {**with_gpu.job, **with_gpu.stack}
    hint = f"With a GPU: {yaml.safe_dump(keys_with_gpu, default_flow_style=True, sort_keys=False, width=1000).strip()}"
    without_gpu = MachineNeeds(**table("first_stacks")["machines"]["cpu"])
    for script in scripts:
        needs = MachineNeeds(gpus=script.processes or 1) if script.gpus else without_gpu
        machine = platform.choose_machine(needs)
        for key, value in machine.stack.items():
            further[key] = {**further.get(key, {}), **value}
        framework, processes = script.framework, _processes_on_node(script, machine.accelerators)
        options: dict[str, Any] = dict(script.options)
        if framework.processes and processes != framework.options[framework.processes].default:
            most = framework.options[framework.processes].maximum
            options[framework.processes] = processes if most is None else int(min(most, processes))
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
        lists = script.requirements is not None or bool(script.missing)
        jobs[script.name] = {
            "framework": framework.name,
            **({"strategy": framework.strategy} if len(framework.strategies) > 1 else {}),
            "image": f"${{registry}}:{f'{script.name}-1.0' if len(scripts) > 1 else '1.0'}",
            **machine.job,
            "roles": script.role_counts,
            **({"options": options} if options else {}),
            **({"ports": ports} if ports else {}),
            "code": _path_from(folder, script.folder),
            **({"requirements": _path_from(folder, script.folder / REQUIREMENTS)} if lists else {}),
            "command": shlex.join(script.command),
            "runs": {"first": {}},
        }
        why = f"Concluded from: {'; '.join(script.reasons)}." if script.reasons else ""
        needed = ", ".join(script.arguments_needed)
        add = f"Add to `command` the arguments that {script.command[0]} needs: {needed}." if needed else ""
        of_machine = f"{machine.choice[:1].upper()}{machine.choice[1:]}." if machine.choice else ""
        of_machine = of_machine if script.gpus else hint
        is_said = any(of_machine in of_job for of_job in notes.values())
        notes[script.name] = tuple(filter(None, (why, *script.remarks, add, "" if is_said else of_machine)))
    return ScriptJobs(jobs, notes, further)


def _processes_on_node(script: TrainingScript, accelerators: int) -> int:
    if not script.gpus:
        return script.processes or 1
    if script.per_accelerator or script.processes is None:
        return accelerators
    return min(script.processes, accelerators)


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
