# SPDX-License-Identifier: Apache-2.0
"""What trainyard itself writes into a job: each release may write it in another way, and that is no change of the job.

So an upgrade starts no run again: a job keeps its text until something else replaces it. Pure.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any

from catalog.openpai import same_registry

_CARRIED = re.compile(r'trainyard_command="\$\(printf %s (?P<text>[A-Za-z0-9+/=]*) \| base64 -d\)"; eval "[^"]*"')
# The last line of a task with the launcher: the time limit, and how Python starts it.
_LAUNCHES = re.compile(r"(?:exec )?timeout [^\n]* -m (?:launcher|trainyard_launcher)")
_MINUTES = re.compile(r" ([0-9]+)m ")
# Lines that run a little Python of ours, by how they begin, and words for them.
_OWN_PYTHON = {
    '"$trainyard_python" ': "unpacks the code",
    "trainyard_interface=": "finds the interface",
}
# The function of a plain start, and what follows it: so many processes begin, and so they end.
_PROCESS = "trainyard_process() {\n"
_NUMBERS = re.compile(r"seq 0 ([0-9]+)")


def carried(command: str) -> str:
    """A command that arrives as it is, whatever reads it on its way to bash."""
    text = base64.b64encode(command.encode()).decode()
    return f'trainyard_command="$(printf %s {text} | base64 -d)"; eval "$trainyard_command"'


def without_forms(protocol: Any) -> Any:
    """The job with everything that trainyard writes by itself in one form, to be compared only."""
    if not isinstance(protocol, Mapping):
        return protocol
    same = dict(protocol)
    if isinstance(roles := protocol.get("taskRoles"), Mapping):
        same["taskRoles"] = {name: _role(row) for name, row in roles.items()}
    if isinstance(rows := protocol.get("prerequisites"), list):
        same["prerequisites"] = [_carrier(_image(row)) for row in rows]
    if isinstance(extras := protocol.get("extras"), Mapping):
        same["extras"] = {key: _carrier(rows) for key, rows in extras.items()}
    return same


def _role(row: Any) -> Any:
    commands = row.get("commands") if isinstance(row, Mapping) else None
    if not isinstance(commands, list) or not all(isinstance(one, str) for one in commands):
        return row
    return {**row, "commands": list(_started(commands))}


def _started(commands: Sequence[str]) -> list[str]:
    """The commands, with words for our own Python, and for how the training starts and ends."""
    commands = [next((w for begins, w in _OWN_PYTHON.items() if one.startswith(begins)), one) for one in commands]
    if commands and _LAUNCHES.fullmatch(commands[-1]):
        limit = _MINUTES.search(commands[-1])
        return [*commands[:-1], f"launcher, {limit[1] if limit else 'no'} minutes"]
    place = next((number for number, one in enumerate(commands) if one.startswith(_PROCESS)), None)
    if place is None:
        return list(commands)
    last = _NUMBERS.search("\n".join(commands[place + 1 :]))
    return [*commands[: place + 1], f"processes 0 to {last[1] if last else 0}"]


def _image(row: Any) -> Any:
    """Releases differed in what they call the default registry."""
    auth = row.get("auth") if isinstance(row, Mapping) else None
    if not isinstance(auth, Mapping) or not isinstance(registry := auth.get("registryuri"), str):
        return row
    return {**row, "auth": {**auth, "registryuri": same_registry(registry)}}


def _carrier(value: Any) -> Any:
    """A value whose texts are commands as people wrote them."""
    if isinstance(value, str):
        return _command(value)
    if isinstance(value, Mapping):
        return {key: _carrier(item) for key, item in value.items()}
    return [_carrier(item) for item in value] if isinstance(value, list) else value


def _command(text: str) -> str:
    match = _CARRIED.fullmatch(text)
    try:
        return base64.b64decode(match["text"], validate=True).decode() if match else text
    except (binascii.Error, UnicodeDecodeError):
        return text
