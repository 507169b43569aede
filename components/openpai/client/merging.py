# SPDX-License-Identifier: Apache-2.0
"""A deployed job, with the difference that the try makes. Pure.

The stack file gives two jobs: one of the run that the try is like, one of the try. Only where these two differ does the
try get a value of its own; everything else is what was deployed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from components.openpai.shell import document, exported
from components.platform.overlay import KEYS, LAUNCH
from components.platform.tries import TryError

Path = tuple[str | int, ...]
_NOTHING = object()
_EXPORT = re.compile(r"(?:export )?(?P<name>\w+)=")
# Every task exports its launch document: JSON in quotation marks.
_LAUNCHED = re.compile(rf"export {LAUNCH}='(?P<document>[^']*)'")
# What runs the command of a job without such a document: as bash has it, or as a function of the process's number.
_RUNS = re.compile(r"trainyard_command=|trainyard_process\(\)")
# Parts of a job, by the key of the stack file that people know.
_KEYS = {
    "prerequisites": "image", "parameters": "parameters", "secrets": "env", "jobRetryCount": "roles",
    "defaults": "cluster", "taskRoles": "roles",
}  # fmt: skip
_EXTRAS = {"storages": "storage", "hivedScheduler": "skus", "gangAllocation": "roles", "trainyard": "storage"}
_ROLE = {"commands": "code", "resourcePerInstance": "skus", "dockerImage": "image"}


def merged(deployed: Any, like: Any, own: Any, path: Path = ()) -> Any:
    """TryError where the file has changed what the try changes as well."""
    if like == own:
        return deployed
    if deployed == like:
        return own
    if isinstance(deployed, Mapping) and isinstance(like, Mapping) and isinstance(own, Mapping):
        rows = {
            key: merged(deployed.get(key, _NOTHING), like.get(key, _NOTHING), own.get(key, _NOTHING), (*path, key))
            for key in {**deployed, **like, **own}
        }
        return {key: value for key, value in rows.items() if value is not _NOTHING}
    commands = path[-1:] == ("commands",) and isinstance(deployed, list)
    if commands and len(deployed) == len(like) == len(own):
        rows_of = zip(deployed, like, own, strict=True)
        return [merged(row[0], row[1], row[2], (*path, number)) for number, row in enumerate(rows_of)]
    before, now, wanted = (_document(text) for text in (deployed, like, own))
    if before is not None and now is not None and wanted is not None:
        return exported(LAUNCH, document(merged(before, now, wanted, (*path, LAUNCH))))
    raise TryError(
        f"`{key_of(path, like)}` has changed in the stack file since it was deployed, and the try changes it as well: "
        "it cannot be told what of the old value stays. An `up` of the stack deploys the change."
    )


def differences(deployed: Any, like: Any, path: Path = ()) -> Iterator[str]:
    """Keys of the stack file that say something else than what is deployed."""
    if deployed == like:
        return
    if isinstance(deployed, Mapping) and isinstance(like, Mapping):
        for key in sorted({*deployed, *like}):
            yield from differences(deployed.get(key, _NOTHING), like.get(key, _NOTHING), (*path, key))
    elif (before := _document(deployed)) is not None and (now := _document(like)) is not None:
        yield from differences(before, now, (*path, LAUNCH))
    elif path[-1:] == ("commands",) and isinstance(deployed, list) and isinstance(like, list):
        for number, (before, now) in enumerate(zip_longest(deployed, like, fillvalue=_NOTHING)):
            yield from differences(before, now, (*path, number))
    else:
        yield key_of(path, like if isinstance(like, str) else deployed)


def _document(command: Any) -> Any:
    """The launch document in a command. None if it exports none."""
    match = _LAUNCHED.fullmatch(command) if isinstance(command, str) else None
    try:
        return json.loads(match["document"]) if match else None
    except (ValueError, RecursionError):
        return None


def key_of(path: Path, value: Any) -> str:
    """The key of a job in the stack file that a part of the protocol follows from."""
    first = str(path[0]) if path else ""
    if first == "extras" and len(path) > 1:
        return _EXTRAS.get(str(path[1]), "plugins")
    if LAUNCH in path[:-1]:
        return KEYS.get(str(path[path.index(LAUNCH) + 1]), "framework")
    if first == "taskRoles" and len(path) > 2:
        part = str(path[2])
        text = value if part == "commands" and isinstance(value, str) else ""
        if _RUNS.match(text):
            return "command"
        named = _EXPORT.match(text)
        if named is not None and not named["name"].startswith("trainyard_"):
            return "command" if named["name"] == LAUNCH else f"env.{named['name']}"
        return _ROLE.get(part, "roles")
    return _KEYS.get(first, first)
