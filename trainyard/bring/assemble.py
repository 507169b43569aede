# SPDX-License-Identifier: Apache-2.0
"""Makes a whole stack of a brought job, and writes it as a file with its notes in the head."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from catalog.platforms import require_capability
from schemas.stack_frame import PLACEHOLDER, StackFrame, placeholder_paths
from trainyard.bring.model import BroughtJob, name_for_stack
from trainyard.bring.notes import CHOICE, PLACEHOLDER_LEFT, Note, NoteTaker

_WIDTH = 120
_HEAD = """\
# Made by `trainyard convert` of {files}. The notes say what it could not bring: read them, then remove them.
"""
_AFTER = """\
# Next: replace each `{placeholder}`, then run `trainyard check` and `trainyard rehearse` with this file.
"""
# The order of a job's keys, as in the examples.
_ORDER = (
    "framework", "strategy", "start", "image", "shape", "roles", "options", "ports", "speaks", "code", "command", "env",
    "inputs", "blockStorageGb", "maximumRuntimeMinutes", "runs",
)  # fmt: skip


def assemble_stack(job: BroughtJob, taker: NoteTaker, platform: str, stack: str, home: Path) -> Mapping[str, Any]:
    """The configuration of a stack that has this job. `stack`: its name, `TEAM-ENVIRONMENT`; empty if it has none."""
    frame = require_capability(platform, StackFrame)
    team, _, environment = stack.rpartition("-")
    team, environment = name_for_stack(team or stack or _user_name(), "team"), environment if team else "dev"
    machine = frame.machine(job.needs)
    if machine.choice:
        taker.note(CHOICE, job.machine_line, machine.choice, "choose the `shape`")
    keys = dict(job.keys)
    if "image" not in keys:
        chosen = frame.image(job.image) if job.image else None
        keys["image"] = chosen.image if chosen else "${registry}:1.0"
        if chosen and chosen.remedy:
            taker.note(CHOICE, job.image_line, f"the image {job.image[:80]} became {chosen.image[:80]}", chosen.remedy)
        elif chosen is None:
            message = "it names no image, so one of your own is meant"
            taker.note(CHOICE, 0, message, "run `trainyard image build` and `trainyard image push`")
    if keys.get("code") == "." and job.script and not Path(job.script).is_file():
        del keys["code"]
        message = f"{job.script[:80]} is not in this folder, so the image has to have it"
        taker.note(CHOICE, 0, message, "name the folder of the code under `code`, if it is elsewhere")
    keys = {**frame.job(job.needs), **keys, **({} if "shape" in keys else {"shape": machine.shape})}
    place = dict(frame.config(home))
    # The team's names stand behind the region.
    first = {key: place.pop(key) for key in list(place)[:1] if key.endswith(":region")}
    config = {
        **first,
        "trainyard:team": team,
        "trainyard:environment": name_for_stack(environment, "env"),
        **place,
        **({"trainyard:network": dict(job.network)} if job.network else {}),
        **machine.config,
        **job.config,
        "trainyard:jobs": {job.name: {key: keys[key] for key in (*_ORDER, *(set(keys) - {*_ORDER})) if key in keys}},
    }
    for path in placeholder_paths(config):
        taker.note(PLACEHOLDER_LEFT, 0, f"nothing says `{'.'.join(map(str, path))}`", "write it there")
    return config


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return "team"


def render_stack(config: Mapping[str, Any], files: Sequence[str], notes: Sequence[Note]) -> str:
    """The text of the stack file."""
    text = _HEAD.format(files=", ".join(" ".join(name.split()) for name in files))
    text += "".join(f"# {note.text()}\n" for note in notes)
    text += _AFTER.format(placeholder=PLACEHOLDER)
    return text + yaml.dump({"config": config}, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Writes the innermost tables on one line, and texts of several lines as such."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text.strip("\n") else None)


def _represent_mapping(dumper: yaml.SafeDumper, table: Mapping[str, Any]) -> yaml.MappingNode:
    node = dumper.represent_mapping("tag:yaml.org,2002:map", table.items())
    inner = not any(isinstance(value, Mapping | list) for value in table.values())
    node.flow_style = inner and len(str(dict(table))) < _WIDTH - 40 and not any("\n" in str(v) for v in table.values())
    return node


def _represent_list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    flow = not any(isinstance(item, Mapping | list) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=flow)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(dict, _represent_mapping)
_Dumper.add_representer(list, _represent_list)
