# SPDX-License-Identifier: Apache-2.0
"""The inputs that only runs on OpenPAI have, and a comparison that ignores what trainyard itself writes into a job.

Each release may write that part in another way. Without it the jobs compare equal, so an upgrade starts no run again.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.openpai import same_registry
from components.openpai.client.cluster_session import address_problem
from components.platform.calls import InputFailure
from components.platform.inputs import OwnInputs, RunInput
from components.platform.values import UNKNOWN, Properties, Secret, canonical_json

_CARRIED = re.compile(r'trainyard_command="\$\(printf %s (?P<text>[A-Za-z0-9+/=]*) \| base64 -d\)"; eval "[^"]*"')
# The last line of a task with the launcher: the time limit, and the call of Python.
_LAUNCHES = re.compile(r"(?:exec )?timeout [^\n]* -m (?:launcher|trainyard_launcher)")
_MINUTES = re.compile(r" ([0-9]+)m ")
# Lines that run our own short Python programs, by their beginnings, with a name for each.
_OWN_PYTHON = {'"$trainyard_python" ': "unpacks the code", "trainyard_interface=": "finds the interface"}
# The shell function of a plain start, and the lines after it, which start and end the processes.
_PROCESS = "trainyard_process() {\n"
_NUMBERS = re.compile(r"seq 0 ([0-9]+)")


def as_base64(command: str) -> str:
    """A command in Base64, which reaches bash unchanged."""
    text = base64.b64encode(command.encode()).decode()
    return f'trainyard_command="$(printf %s {text} | base64 -d)"; eval "$trainyard_command"'


def normal_form(protocol: Any) -> Any:
    """The job with trainyard's own parts in one normal form. Only for comparison."""
    if not isinstance(protocol, Mapping):
        return protocol
    same = dict(protocol)
    if isinstance(roles := protocol.get("taskRoles"), Mapping):
        same["taskRoles"] = {name: _normal_role(row) for name, row in roles.items()}
    if isinstance(rows := protocol.get("prerequisites"), list):
        same["prerequisites"] = [_decode_commands(_normal_image(row)) for row in rows]
    if isinstance(extras := protocol.get("extras"), Mapping):
        same["extras"] = {key: _decode_commands(rows) for key, rows in extras.items()}
    return same


def _normal_role(row: Any) -> Any:
    """The role, with names in place of our own Python, and of the lines that start and end the training."""
    commands = row.get("commands") if isinstance(row, Mapping) else None
    if not isinstance(commands, list) or not all(isinstance(one, str) for one in commands):
        return row
    commands = [next((name for begins, name in _OWN_PYTHON.items() if one.startswith(begins)), one) for one in commands]
    first_process = next((number for number, one in enumerate(commands) if one.startswith(_PROCESS)), None)
    if commands and _LAUNCHES.fullmatch(commands[-1]):
        limit = _MINUTES.search(commands[-1])
        commands[-1] = f"launcher, {limit[1] if limit else 'no'} minutes"
    elif first_process is not None:
        last = _NUMBERS.search("\n".join(commands[first_process + 1 :]))
        commands[first_process + 1 :] = [f"processes 0 to {last[1] if last else 0}"]
    return {**row, "commands": commands}


def _normal_image(row: Any) -> Any:
    """The image's row in one form: releases have written the default registry differently."""
    auth = row.get("auth") if isinstance(row, Mapping) else None
    if not isinstance(auth, Mapping) or not isinstance(registry := auth.get("registryuri"), str):
        return row
    return {**row, "auth": {**auth, "registryuri": same_registry(registry)}}


def _decode_commands(value: Any) -> Any:
    """The value, with commands decoded to their original text."""
    if isinstance(value, str):
        match = _CARRIED.fullmatch(value)
        try:
            return base64.b64decode(match["text"], validate=True).decode() if match else value
        except (binascii.Error, UnicodeDecodeError):
            return value
    if isinstance(value, Mapping):
        return {key: _decode_commands(item) for key, item in value.items()}
    return [_decode_commands(item) for item in value] if isinstance(value, list) else value


KEYS = ("uri", "user", "virtualCluster")
_TEXT = {"type": "string"}


def _openpai_input_failures(inputs: Properties) -> Iterator[InputFailure]:
    yield from _cluster_failures(inputs.get("cluster"))
    protocol = inputs.get("protocol")
    if protocol is None or protocol is UNKNOWN or isinstance(protocol, Secret):
        return
    roles = protocol.get("taskRoles") if isinstance(protocol, Mapping) else None
    if roles is UNKNOWN:
        return
    if not isinstance(roles, Mapping) or not roles:
        yield InputFailure("protocol", "This is a job of OpenPAI's protocol, version 2, with `taskRoles`.")
        return
    nodes = inputs.get("nodes")
    for index, node in enumerate(nodes if isinstance(nodes, list) else ()):
        role = node.get("role") if isinstance(node, Mapping) else UNKNOWN
        if role is not UNKNOWN and role not in roles:
            yield InputFailure(f"nodes[{index}].role", f"The job has no task role `{role}`; it has {', '.join(roles)}.")


def _cluster_failures(cluster: Any) -> Iterator[InputFailure]:
    if cluster is None or cluster is UNKNOWN:
        return
    if not isinstance(cluster, Mapping):
        yield InputFailure("cluster", f"This is an object: {', '.join(KEYS)}.")
        return
    for key in KEYS:
        if cluster.get(key) in (None, ""):
            yield InputFailure(f"cluster.{key}", f"`{key}` is missing.")
    for key in sorted(set(cluster) - set(KEYS)):
        yield InputFailure(f"cluster.{key}", f"A cluster has no `{key}`; it has {', '.join(KEYS)}.")
    uri = cluster.get("uri")
    if isinstance(uri, str) and uri and (problem := address_problem(uri)):
        yield InputFailure("cluster.uri", f"`{uri}` is not the address of a cluster: {problem}.")


def _with_hidden_values(old: Properties, new: Properties) -> Properties:
    """The old inputs, completed from the new ones. A cluster masks all secrets of a job as one text, and image and
    runtime are in the protocol. Parts that trainyard itself writes into a job are no difference."""
    before, after = old.get("protocol"), new.get("protocol")
    old = {**{key: new[key] for key in ("image", "maximumRuntimeMinutes") if new.get(key)}, **old}
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return old
    if isinstance(before.get("secrets"), str):
        before = {**before, "secrets": after.get("secrets")}
    same = canonical_json(normal_form(before)) == canonical_json(normal_form(after))
    return {**old, "protocol": after if same else before}


INPUTS = OwnInputs(
    inputs={
        "cluster": RunInput(
            {"type": "object", "additionalProperties": _TEXT, "description": f"Text by name: {', '.join(KEYS)}"},
            required=True,
            connects=True,
        ),
        "token": RunInput(
            {**_TEXT, "secret": True, "description": "A token of the user; OPENPAI_TOKEN takes precedence"},
            may_change=True,
            connects=True,
        ),
        "certificate": RunInput(
            {**_TEXT, "description": "Authorities that sign the portal's certificate: PEM, or the path of a file"},
            may_change=True,
            connects=True,
        ),
        "protocol": RunInput({"type": "object", "additionalProperties": {"$ref": "pulumi.json#/Any"}}, required=True),
    },
    stands_on="cluster",
    failures=_openpai_input_failures,
    with_hidden=_with_hidden_values,
    access_comes_late=False,
)
