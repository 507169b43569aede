# SPDX-License-Identifier: Apache-2.0
"""Reads what a stack's last `up` requested, from its state. Later changes of the stack file are for `preview`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from catalog.platforms import platform_with
from components.plan.model import RUN_TYPE
from components.platform.local import PROJECT_NAME, stack_states_folder, states_in
from components.platform.review import Snapshot
from trainyard.review.preview import resource_of_state

_SECONDS = 120.0
_STACK_TYPE = "pulumi:pulumi:Stack"
_NAMESPACE, _TEXTS, _PARTS = "trainyard:", ("compartment", "tenancy"), ("bucket", "network", "registry")
_OR_STATE = "Or name a file with what `pulumi stack export` prints: --state FILE"


class DriftError(Exception):
    """A stack cannot be compared. The message is for the user."""


@dataclass(frozen=True)
class Declared:
    """What a stack declared. `runs`: by job and name, the state of each run at the end of the last `up`. `state_of`:
    what other stacks of the same backend declared, by their names."""

    snapshot: Snapshot
    runs: Mapping[tuple[str, str], str]
    state_of: Callable[[str], Snapshot | None] = lambda stack: None


def of_local(cloud_home: Path, stack: str, platform: str) -> Declared:
    """Reads the state from the Pulumi backend beside a local cloud."""
    own = (
        state
        for state in states_in(stack_states_folder(cloud_home))
        if state.stack == stack and state.project == PROJECT_NAME and any(state.made())
    )
    state = next(own, None)
    if state is None:
        raise DriftError(f"{stack} is not up on the local cloud in {cloud_home}: `trainyard up {stack} --local`")
    return of_state(state.rows, stack, platform)


def of_export(text: str, stack: str, platform: str) -> Declared:
    """Reads the state from the output of `pulumi stack export`."""
    try:
        rows = json.loads(text)["deployment"]["resources"]
        stacks = {str(row["urn"]).split("::")[0].rpartition(":")[2] for row in rows}
        if stacks and stack not in stacks:
            # Compared with the state of another stack, drift of this stack would not show.
            raise DriftError(f"this is the state of the stack {', '.join(sorted(stacks))}, not of {stack}")
        return of_state(rows, stack, platform)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DriftError("this is not the state of a stack that is up: `pulumi stack export` prints one") from None


def export_state(stack: str, file: Path) -> str:
    """Runs plain `pulumi stack export` in the project of the stack file, with the backend that the caller uses."""
    project = next((folder for folder in file.resolve().parents if (folder / "Pulumi.yaml").is_file()), None)
    pulumi = shutil.which("pulumi")
    if project is None or pulumi is None:
        missing = "no `pulumi` on the PATH" if pulumi is None else f"no Pulumi.yaml in a folder above {file}"
        raise DriftError(f"Pulumi is needed to read the state of {stack}, but there is {missing}\n{_OR_STATE}")
    words = [pulumi, "stack", "export", "--stack", stack, "--non-interactive"]
    try:
        done = subprocess.run(
            words, cwd=project, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL,
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise DriftError(f"Pulumi did not export the state of {stack} within {_SECONDS:.0f} s\n{_OR_STATE}") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or ["it printed no reason"]
        raise DriftError(f"Pulumi could not export the state of {stack}: {last[0]}\n{_OR_STATE}")
    return done.stdout


def with_names(declared: Declared, config: Mapping[str, Any]) -> Declared:
    """Adds the names of places from the stack file, for words such as "in the stack's compartment".

    A state has only ids, and does not say which of them is the stack's own place.
    """
    named = {key: config.get(f"{_NAMESPACE}{key}") for key in (*_TEXTS, *_PARTS)}
    plan = {key: value for key, value in named.items() if isinstance(value, str if key in _TEXTS else Mapping)}
    return replace(declared, snapshot=replace(declared.snapshot, plan=plan))


def of_state(rows: Iterable[Mapping[str, Any]], stack: str, platform: str) -> Declared:
    rows = list(rows)
    roots = (row for row in rows if row["type"] == _STACK_TYPE)
    there = next((name for row in roots if (name := platform_with(row.get("outputs") or {}))), platform)
    if there != platform:
        # Nothing in the state is in this platform's cloud, so drift would not show.
        raise DriftError(f"{stack} is up on `{there}`, and its file says `{platform}`")
    snapshot = snapshot_of_state(rows, stack, platform)
    if not any(resource.id for resource in snapshot.resources):
        raise DriftError(f"nothing of {stack} is up: its state is empty")
    runs = {}
    for row in rows:
        if row["type"] == RUN_TYPE and _is_made(row):
            job, _, name = str(row["urn"]).rpartition("::")[2].partition("/")
            tags = (row.get("inputs") or {}).get("tags") or {}
            state = str((row.get("outputs") or {}).get("state", ""))
            runs[str(tags.get("job", job)), str(tags.get("run", name))] = state
    return Declared(snapshot, runs)


def snapshot_of_state(rows: Iterable[Mapping[str, Any]], stack: str, platform: str) -> Snapshot:
    made = (row for row in rows if _is_made(row) and not str(row["type"]).startswith("pulumi:"))
    return Snapshot(stack, platform, {}, tuple(resource_of_state(str(row["urn"]), row) for row in made))


def _is_made(row: Mapping[str, Any]) -> bool:
    return not row.get("delete") and not row.get("external")
