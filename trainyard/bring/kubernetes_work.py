# SPDX-License-Identifier: Apache-2.0
"""What the readers of Kubernetes find, as a job of a stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog import frameworks
from components.platform.new_stacks import MachineNeeds
from schemas.unfilled_values import PLACEHOLDER
from trainyard.bring.kubernetes_programs import StartedProgram
from trainyard.bring.model import LONGEST_MINUTES, BroughtJob, name_for_stack
from trainyard.bring.notes import CHOICE, LEFT_OUT, NoteTaker, note_secret_words

# The largest number that a file may name, of seconds for instance.
MOST = 100_000_000


@dataclass(frozen=True, slots=True)
class BroughtWork:
    """`roles`: of the framework, with their numbers of nodes. `processes`: of a node; 0 means one for each accelerator.
    `image`: with its line. `minutes`, `retries`: 0 if the file sets none. `commands`: of roles that have their own."""

    framework: str
    strategy: str
    roles: Mapping[str, int]
    program: StartedProgram
    processes: int | None
    options: Mapping[str, Any]
    environment: Mapping[str, str]
    needs: MachineNeeds
    minutes: int
    retries: int
    image: tuple[str, int]
    command_line: int
    machine_line: int
    commands: Mapping[str, str] = field(default_factory=dict)


def brought_job(name: str, work: BroughtWork, taker: NoteTaker) -> BroughtJob:
    program, options = work.program, dict(work.options)
    row = frameworks.framework_row(work.framework, work.strategy or None)
    processes = (work.needs.gpus or 1) if work.processes == 0 else work.processes
    if row.processes and processes and 1 < processes <= MOST:
        most = row.options[row.processes].maximum
        options[row.processes] = processes if most is None else int(min(processes, most))
    if program.dropped:
        message = f"`{' '.join(' '.join(program.dropped).split())[:80]}` of its script was left out"
        taker.note(LEFT_OUT, work.command_line, message, "do it in the image, or in the script")
    note_secret_words(program.secrets, work.command_line, taker)
    if program.has_secret:
        message = "an argument of the command was left out: it is a secret in plain text"
        taker.note(
            LEFT_OUT, work.command_line, message, "let the script read it from `env`, with `trainyard secret set`"
        )
    command = program.command
    if not command:
        message = "it names no command, and only its image says which one runs"
        taker.note(CHOICE, work.command_line, message, "write it under `command`")
        command = PLACEHOLDER
    roles: dict[str, Any] = {}
    for role, count in work.roles.items():
        more: dict[str, Any] = {"command": work.commands[role]} if role in work.commands else {}
        more |= {"retry": {"count": work.retries}} if work.retries else {}
        roles[role] = {"replicas": count, **more} if more else count
    keys: dict[str, Any] = {
        "framework": work.framework,
        **({"strategy": work.strategy} if work.strategy else {}),
        "roles": roles,
        **({"options": options} if options else {}),
        **({"code": "."} if program.script else {}),
        "command": command,
        **({"env": environment} if (environment := {**work.environment, **program.environment}) else {}),
        "maximumRuntimeMinutes": min(work.minutes, LONGEST_MINUTES) or LONGEST_MINUTES,
        "runs": {"base": {}},
    }
    return BroughtJob(
        name_for_stack(name), keys, work.needs, image=work.image[0], image_line=work.image[1],
        machine_line=work.machine_line, script=program.script,
    )  # fmt: skip
