# SPDX-License-Identifier: Apache-2.0
"""What this node runs: its framework's service, helpers, and the team's command once for each process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher import frameworks, placeholders, speaks
from launcher.document import Launch
from launcher.errors import LaunchError
from launcher.placeholders import Place
from launcher.processes import Spec


@dataclass(frozen=True)
class Work:
    """`services` start first. `commands` start when all that they wait for is ready and `awaited`, if any, succeeded.

    All of them run in `folder`.
    """

    folder: str
    services: tuple[Spec, ...]
    commands: tuple[Spec, ...]
    awaited: Spec | None = None


def build_work(launch: Launch, place: Place, environment: Mapping[str, str], code: str = "") -> Work:
    """Everything to run, with its placeholders filled in. Starts nothing."""
    values = {**placeholders.node_values(launch, place), **frameworks.framework_values(launch, place.addresses)}
    inherited = {**environment, "PYTHONUNBUFFERED": environment.get("PYTHONUNBUFFERED", "1")}
    inherited.update(frameworks.framework_variables(launch, _process_environment(launch, values, inherited, 0)))
    folder = code or code_folder(launch)
    inherited.update(speaks.spoken_variables(launch, place, inherited, folder))
    commands = tuple(_command_specs(launch, values, inherited, folder))
    first = commands[0].environment if commands else _process_environment(launch, values, inherited, 0)
    services = frameworks.framework_helpers(launch, place, first, folder)
    if launch.start:
        words = placeholders.fill_all_placeholders(launch.start, values, "start")
        kind = "service" if commands else ""
        services.append(Spec(words, first, _output_prefix(launch.rank, kind), folder, helper=bool(commands)))
    if not services and not commands:
        raise LaunchError(f"the role `{launch.role}` has nothing to run: give the job a `command`")
    awaited = None
    if launch.awaits_command:
        words = _with_interpreter(placeholders.fill_all_placeholders(launch.awaits_command, values, "awaits_command"))
        awaited = Spec(words, first, "", folder)
    # Without a command, the service itself has to wait: it takes the command's place.
    if not commands:
        return Work(folder, (), tuple(services), awaited)
    return Work(folder, tuple(services), commands, awaited)


def _command_specs(launch: Launch, values: Mapping[str, str], inherited: Mapping[str, str], folder: str) -> list[Spec]:
    if not launch.command:
        return []
    # A wrapper such as torchrun starts the processes itself.
    count = 1 if launch.wrap else launch.processes
    found = []
    for local in range(count):
        own = {**values, **placeholders.process_values(launch, local)}
        words = list(launch.command)
        # Braces in commands of another system belong to its shell.
        if not launch.speaks:
            words = placeholders.fill_all_placeholders(words, own, "command")
        if launch.wrap:
            # Wrappers such as torchrun take the script alone: `python train.py` is `train.py`.
            script = words[1:] if words[0] in ("python", "python3") else words
            words = [*placeholders.fill_all_placeholders(launch.wrap, own, "wrap"), *script]
        else:
            words = speaks.wrap_for_systems(launch, frameworks.wrap_for_framework(launch, _with_interpreter(words)))
        prefix = _output_prefix(launch.rank, str(local) if count > 1 else "")
        found.append(Spec(words, _process_environment(launch, values, inherited, local), prefix, folder))
    return found


def _process_environment(
    launch: Launch, values: Mapping[str, str], inherited: Mapping[str, str], local: int
) -> dict[str, str]:
    own = {**values, **placeholders.process_values(launch, local)}
    framework = {name: placeholders.fill_placeholders(text, own, name) for name, text in launch.environment.items()}
    return {**inherited, **framework}


def _output_prefix(rank: int, part: str) -> str:
    return f"[{rank}.{part}] " if part else f"[{rank}] "


def _with_interpreter(words: Sequence[str]) -> list[str]:
    """Runs Python scripts with the image's Python, which also replaces `python` if there is no such program."""
    return [sys.executable, "-u", *words] if words[0].endswith(".py") else list(words)


def code_folder(launch: Launch) -> str:
    """The folder of the command's script: the current one, or where the platform unpacked the job's code."""
    here, unpacked = Path.cwd(), launch.identity.unpacked()
    # A script that was written for another system may have any name, and its interpreter options.
    words = launch.command if launch.speaks else [word for word in launch.command[:2] if word.endswith((".py", ".sh"))]
    scripts = [word for word in words if not os.path.isabs(word)]
    if unpacked is None or not scripts:
        return str(here)
    folders = [here, unpacked, *sorted(path for path in unpacked.glob("*") if path.is_dir())]
    return str(next((folder for folder in folders if any((folder / script).is_file() for script in scripts)), here))
