# SPDX-License-Identifier: Apache-2.0
"""The engine that runs a plugin: the ids of a resource in its state, and remedies with its commands.

A create may find that its resource exists already. There are two cases. Either an earlier create was killed before it
returned: then the resource has to be adopted. Or the engine replaces the resource by an equal one (`--replace`, `pulumi
state taint`): then it must not be adopted, because the engine deletes it next. The engine's calls are the same in both
cases. Only its state, which is on disk before a create begins, shows which one it is.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from components.platform.calls import Call, ProviderError

_ENGINES = ("pulumi", "pulumi.exe")
_SECONDS = 120.0
_RETRY_SECONDS, _PAUSE = 20.0, 0.1
# The ids that this operation has deleted, by URN.
_DELETED: dict[str, set[str]] = {}


def recorded_ids(urn: str) -> frozenset[str]:
    """The ids of the resource in the state of its stack; empty if no engine runs this plugin."""
    engine = _engine_path()
    before = _ids_before(engine, *_stack_of(urn)).get(urn, frozenset()) if engine else frozenset()
    return before - _DELETED.get(urn, set())


def note_deleted(urn: str, id: str) -> None:  # noqa: A002
    """Notes that this operation deleted the resource, which the engine had when it began."""
    _DELETED.setdefault(urn, set()).add(id)


@cache
def _ids_before(engine: str, stack: str, project: str) -> Mapping[str, frozenset[str]]:
    """The ids by URN at the beginning of the operation. The engine starts a plugin for each operation, and replaces
    only resources that it had then."""
    ids: dict[str, frozenset[str]] = {}
    for row in _recorded_resources(_export_stack(engine, stack, project)):
        if row.get("id"):
            ids[row["urn"]] = ids.get(row["urn"], frozenset()) | {str(row["id"])}
    return ids


def recorded_parent(urn: str) -> str:
    """The URN of the resource's parent component; empty if it has none, or if there are several."""
    engine, (head, chain, _) = _engine_path(), urn.rsplit("::", 2)
    above = f"{head}::{chain.rpartition('$')[0]}::"
    rows = _recorded_resources(_export_stack(engine, *_stack_of(urn))) if engine and "$" in chain else []
    parents = [str(row["urn"]) for row in rows if str(row["urn"]).startswith(above)]
    return parents[0] if len(parents) == 1 else ""


def _engine_path() -> str:
    """The path of the program that started this process, if it is Pulumi."""
    try:
        program = psutil.Process(os.getppid()).exe()
    except psutil.Error:
        return ""
    return program if Path(program).name in _ENGINES else ""


@cache
def writes_for_programs() -> bool:
    """Whether the engine writes JSON. Then a diff must be as the real plugin's, without words for people."""
    engine = _engine_path()
    return bool(engine) and any(
        word in ("-j", "--json", "--json=true") for word in psutil.Process(os.getppid()).cmdline()
    )


def _stack_of(urn: str) -> tuple[str, str]:
    stack, project = urn.removeprefix("urn:pulumi:").split("::")[:2]
    return stack, project


def _export_stack(engine: str, stack: str, project: str) -> str:
    until = time.monotonic() + _RETRY_SECONDS
    while True:
        reason = ""
        # First the name in a file backend, then the name in Pulumi's service.
        for name in (f"organization/{project}/{stack}", stack):
            words = [engine, "stack", "export", "--stack", name, "--non-interactive"]
            done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_SECONDS)
            if done.returncode == 0:
                return done.stdout
            reason = reason or done.stderr.strip()
        # Retry: the engine writes the file several times a second, and may have done so during the read.
        if "failed to load checkpoint" not in reason or time.monotonic() > until:
            raise ProviderError(
                f"the resource exists already, and the state of the stack {stack} cannot be read: {reason}",
                "Make `pulumi stack export` work, then run this again.",
            )
        time.sleep(_PAUSE)


def _recorded_resources(exported: str) -> list[dict[str, Any]]:
    return list((json.loads(exported).get("deployment") or {}).get("resources") or ())


_SHIPPED = Path(__file__).resolve().parents[2] / "stacks"
_LOCAL = {"up": "up", "destroy": "down", "import": "import"}


def remedy_commands(urn: str, word: str, *options: str) -> str:
    """A command on the stack of a resource, for a message: of `trainyard`, and of plain Pulumi."""
    stack = urn.removeprefix("urn:pulumi:").partition("::")[0]
    # Set by `trainyard` for the engine.
    folder = Path(os.environ.get("TRAINYARD_STACKS") or _SHIPPED)
    where = [] if folder == _SHIPPED else ["--stacks", str(folder)]
    local = shlex.join(["trainyard", _LOCAL[word], stack, "--local", *options, *where])
    return (
        f"`{local}` (or, where you call Pulumi yourself, `{shlex.join(['pulumi', word, '--stack', stack, *options])}`)"
    )


def delete_old_remedy(call: Call) -> str:
    command = remedy_commands(call.urn, "destroy", "--target", call.urn, "--target-dependents")
    return (
        "The old resource still exists, because the engine creates the new one first. Delete the old one with "
        f"everything that depends on it: {command}. Then bring the stack up again."
    )


def unchangeable_error(call: Call, keys: Iterable[str]) -> ProviderError:
    named = ", ".join(f"`{key}`" for key in keys)
    return ProviderError(
        f"{call.name}: the local cloud cannot change {named} of an existing resource.",
        f"Restore the old value, or replace the resource: {remedy_commands(call.urn, 'up', '--replace', call.urn)}.",
    )
