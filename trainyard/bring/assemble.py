# SPDX-License-Identifier: Apache-2.0
"""Makes a whole stack of a brought job, and writes it as a file with its notes in the head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.platforms import require_capability
from components.platform.new_stacks import Caller, NewStacks
from schemas.unfilled_values import PLACEHOLDER, placeholder_paths
from trainyard.bring.model import BroughtJob, name_for_stack
from trainyard.bring.notes import CHOICE, PLACEHOLDER_LEFT, Note, NoteTaker
from trainyard.bring.stack_text import stack_config, stack_text


def assemble_stack(job: BroughtJob, taker: NoteTaker, platform: str, stack: str, caller: Caller) -> Mapping[str, Any]:
    """The configuration of a stack that has this job. `stack`: its name, `TEAM-ENVIRONMENT`."""
    here = require_capability(platform, NewStacks)
    machine = here.choose_machine(job.needs)
    if machine.choice:
        taker.note(CHOICE, job.machine_line, machine.choice, "choose the `shape`")
    keys = {**machine.job, **job.keys}
    if "image" not in keys and job.image:
        keys["image"], remedy = here.choose_image(job.image)
        if remedy:
            message = f"the image {job.image[:80]} became {keys['image'][:80]}"
            taker.note(CHOICE, job.image_line, message, remedy)
    elif "image" not in keys:
        keys["image"] = "${registry}:1.0"
        message = "it names no image, so one of your own is meant"
        taker.note(CHOICE, 0, message, "run `trainyard image build` and `trainyard image push`")
    if keys.get("code") == "." and job.script and not Path(job.script).is_file():
        del keys["code"]
        message = f"{job.script[:80]} is not in this folder, so the image has to have it"
        taker.note(CHOICE, 0, message, "name the folder of the code under `code`, if it is elsewhere")
    answers = here.find_answers(caller)
    if answers.problem:
        taker.note(CHOICE, 0, answers.problem, "correct it, or write down which account it is")
    account = {answer.key: answer.value if answer.unknown is None else answer.unknown for answer in answers.values}
    # A job that names its shape says what it needs of the stack, too.
    own: dict[str, Any] = {**here.stack_keys(account), **({} if "shape" in job.keys else machine.stack)}
    if "${registry}" not in keys["image"]:
        own.pop("trainyard:registry", None)
    for key, value in {**({"trainyard:network": job.network} if job.network else {}), **job.config}.items():
        own[key] = {**own.get(key, {}), **value} if isinstance(value, Mapping) else value
    team, _, environment = stack.rpartition("-")
    config = stack_config(
        name_for_stack(team or stack, "team"),
        name_for_stack(environment if team else "dev", "env"),
        own,
        {job.name: keys},
    )
    for path in placeholder_paths(config):
        taker.note(PLACEHOLDER_LEFT, 0, f"nothing says `{'.'.join(map(str, path))}`", "write it there")
    return config


def render_stack(config: Mapping[str, Any], files: Sequence[str], notes: Sequence[Note]) -> str:
    """The text of the stack file."""
    names = ", ".join(" ".join(name.split()) for name in files)
    head = (
        f"Made by `trainyard convert` of {names}. The notes say what it could not bring: read them, then remove them.",
        *(note.text() for note in notes),
        f"Next: replace each `{PLACEHOLDER}`, then run `trainyard check` and `trainyard rehearse` with this file.",
    )
    return stack_text(head, config)
