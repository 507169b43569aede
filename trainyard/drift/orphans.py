# SPDX-License-Identifier: Apache-2.0
"""Finds orphans: resources whose tags say that trainyard made them, and that are in no state at hand.

A state proves whose a resource is, tags only claim it. So a resource stays if a state has it, if a state of any stack
names it, or if it lacks a tag that trainyard sets.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from components.plan.model import RUN_TYPE
from components.platform.local import State, has_address, stack_states_folder, states_in
from components.platform.owned import OUR_TAGS, OwnedReading, OwnedResource
from schemas.name_suggestions import and_list
from trainyard.drift.declared import DriftError, export_state

_SECONDS = 120.0
_AT_ONCE = 4


@dataclass(frozen=True)
class StatesAtHand:
    """`unread`: states that could not be read. What they have is not known, so nothing may be removed."""

    states: tuple[State, ...]
    unread: tuple[str, ...] = ()

    @cached_property
    def _ids(self) -> frozenset[tuple[str, str]]:
        """Type and id of every resource that a state has."""
        found = set()
        for state in self.states:
            for row in state.made():
                outputs = row.get("outputs") or {}
                found |= {(row["type"], str(row["id"])), (row["type"], str(outputs.get("arn")))}
                if row["type"] == RUN_TYPE:
                    found |= {("", str(node.get("id"))) for node in outputs.get("nodeRuns") or ()}
        return frozenset(found)

    @cached_property
    def _all_ids(self) -> frozenset[str]:
        return frozenset(identity for _, identity in self._ids)

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return {state.stack: json.dumps(state.rows, ensure_ascii=False) for state in self.states}

    def has(self, resource: OwnedResource) -> bool:
        if resource.within and resource.within in self._all_ids:
            return True
        return any((token, identity) in self._ids for token in (resource.token, "") for identity in resource.ids)

    def stack_that_names(self, resource: OwnedResource) -> str | None:
        """A stack whose state has the resource's id in any value, such as the subnet of another stack's job."""
        for stack, text in self._texts.items():
            if any(identity in text and has_address(text, identity) for identity in resource.ids):
                return stack
        return None


@dataclass(frozen=True)
class Orphan:
    """`stays`: why it must not be removed. Empty if it may."""

    resource: OwnedResource
    stays: str = ""


def find_orphans(
    readings: Iterable[OwnedReading], states: StatesAtHand, known: Sequence[str], delete_data: bool
) -> tuple[Orphan, ...]:
    """`known`: stacks whose states are elsewhere, as `stack NAME`. `delete_data`: what holds data may go, too."""
    found = {(one.token, one.id): one for reading in readings for one in reading.resources}
    orphans = []
    for resource in found.values():
        if f"stack {resource.stack}" not in known and not states.has(resource):
            orphans.append(Orphan(resource, reason_to_stay(resource, states, delete_data)))
    return tuple(sorted(orphans, key=lambda orphan: (orphan.resource.stack, orphan.resource.words, orphan.resource.id)))


def reason_to_stay(resource: OwnedResource, states: StatesAtHand, delete_data: bool) -> str:
    if not resource.token:
        return "trainyard makes no such resource, so somebody else tagged it"
    if not resource.has_all_tags:
        missing = and_list([name for name in OUR_TAGS if not resource.tags.get(name)])
        return f"it lacks what trainyard tags everything with ({missing}), so somebody else may have made it"
    if (stack := states.stack_that_names(resource)) is not None:
        return f"the state of the stack {stack} names it"
    if resource.content and not delete_data:
        return f"it has {resource.content} in it: --delete-data removes it with them"
    return ""


def states_of_local_stacks(cloud_home: Path) -> StatesAtHand:
    """The states of all projects in the Pulumi backend beside a local cloud."""
    folder = stack_states_folder(cloud_home)
    states = tuple(states_in(folder))
    read = {(state.project, state.stack) for state in states}
    unread = [file for file in sorted(folder.glob("*/*.json")) if (file.parent.name, file.stem) not in read]
    return StatesAtHand(states, tuple(f"the state in {file}" for file in unread))


def states_of_backend(file: Path) -> StatesAtHand:
    """The states of all stacks in the backend that the caller uses, by plain `pulumi`. `file`: a stack file."""
    try:
        stacks = [str(row["name"]) for row in json.loads(list_stacks_of_backend(file))]
    except (ValueError, KeyError, TypeError):
        raise DriftError("`pulumi stack ls --json` did not print a list of stacks") from None

    def exported(stack: str) -> State | str:
        try:
            return state_of_export(export_state(stack, file), stack)
        except DriftError as error:
            return f"the state of the stack {stack}: {str(error).splitlines()[0]}"

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(pool.map(exported, stacks))
    states = tuple(result for result in results if isinstance(result, State))
    return StatesAtHand(states, tuple(result for result in results if isinstance(result, str)))


def state_of_export(text: str, stack: str = "") -> State:
    """Reads the output of `pulumi stack export`."""
    try:
        deployment: Any = json.loads(text)["deployment"] or {}
        rows = tuple(deployment.get("resources") or ())
        first = str(rows[0]["urn"]).split("::")[0].rpartition(":")[2] if rows else ""
        if not all(isinstance(row["type"], str) for row in rows):
            raise TypeError
        return State("", first or stack, rows)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise DriftError("this is not the state of a stack: `pulumi stack export` prints one") from None


def list_stacks_of_backend(file: Path) -> str:
    folder = next((folder for folder in file.resolve().parents if (folder / "Pulumi.yaml").is_file()), None)
    pulumi = shutil.which("pulumi")
    if folder is None or pulumi is None:
        missing = "no `pulumi` on the PATH" if pulumi is None else f"no Pulumi.yaml in a folder above {file}"
        raise DriftError(f"Pulumi is needed to read the states of the stacks, but there is {missing}")
    words = [pulumi, "stack", "ls", "--all", "--json", "--non-interactive"]
    try:
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL,
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise DriftError(f"Pulumi did not list the stacks within {_SECONDS:.0f} s") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or ["it printed no reason"]
        raise DriftError(f"Pulumi could not list the stacks: {last[0]}")
    return done.stdout
