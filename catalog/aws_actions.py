# SPDX-License-Identifier: Apache-2.0
"""The actions that a deployer needs, with their resources, from the calls that the provider makes.

catalog/aws_provider_calls.toml has the calls, aws_calls.toml their actions. aws_dl1_access.toml has the resource types
of each kind, and the resources on which actions are granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from catalog.tables import table

LIFE = ("create", "read", "delete")


@cache
def rows_of_kind(kind: str) -> tuple[Mapping[str, Any], ...]:
    """The rows of (resource, actions) for making one kind."""
    row = table("aws_dl1_access")["deployer"][kind]
    # Retained resources are never deleted.
    whole_life = LIFE[:-1] if row.get("kept") else LIFE
    phases_of = {"makes": whole_life, "deletes": ("delete",)}
    actions = {
        *(
            action
            for key, phases in phases_of.items()
            for token, inputs in row.get(key, {}).items()
            for action in actions_of_type(token, inputs, phases)
        ),
        *(action for token in row.get("looks_up", ()) for action in actions_of_function(token)),
    }
    by_resource: dict[str, set[str]] = {}
    for action in actions:
        for resource in row.get("on", {}).get(action) or granted_on(action):
            by_resource.setdefault(resource, set()).add(action)
    for more in row.get("more", ()):
        by_resource.setdefault(more["on"], set()).update(more["actions"])
    return tuple({"on": resource, "actions": sorted(by_resource[resource])} for resource in sorted(by_resource))


def granted_on(action: str) -> list[str]:
    """The resources on which an action is granted, by the longest pattern that fits it."""
    rows = table("aws_dl1_access")["granted"]
    fitting = [pattern for pattern in rows if fnmatchcase(action, pattern)]
    if not fitting:
        raise ValueError(f"[granted] in aws_dl1_access.toml does not say on what {action} is granted")
    resources: list[str] = rows[max(fitting, key=len)]
    return resources


def actions_of_type(token: str, inputs: str, phases: Sequence[str]) -> Iterator[str]:
    """The actions for these phases of a resource's life, with these inputs or conditions."""
    row = table("aws_provider_calls")["types"][token]
    yield from _actions(row, [*(call for phase in phases for call in row[phase]), *_for_inputs(row, inputs)])
    for name in (*phases, *inputs.split()):
        yield from row.get("also", {}).get(name, ())


def actions_of_function(token: str) -> Iterator[str]:
    row = table("aws_provider_calls")["functions"][token]
    yield from _actions(row, row["read"])


def _for_inputs(row: Mapping[str, Any], inputs: str) -> Iterator[str]:
    for name in inputs.split():
        yield from row.get("with", {}).get(name, ())
        yield from row.get("when", {}).get(name, ())


def _actions(row: Mapping[str, Any], calls: Iterable[str]) -> Iterator[str]:
    named = table("aws_calls")["actions"]
    for call in calls:
        service, _, operation = call.rpartition(":")
        service = service or row["service"]
        yield from (f"{service}:{action}" for action in named.get(service, {}).get(operation, [operation]))
