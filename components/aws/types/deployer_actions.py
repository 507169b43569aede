# SPDX-License-Identifier: Apache-2.0
"""The actions that a deployer needs, with their resources, from the calls that the provider makes.

The rows of resource types have the calls, catalog/aws_calls.toml their actions. aws_dl1_access.toml has the resource
types of each kind, and the resources on which actions are granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from catalog.tables import table
from components.aws.types import SERVED_TYPES
from components.aws.types.live_beside import LIVE_BESIDE
from components.aws.types.provider_calls import PHASES, aws_function_calls, aws_type_calls


@cache
def rows_of_kind(kind: str) -> tuple[Mapping[str, Any], ...]:
    """The rows of (resource, actions) for making one kind."""
    row = table("aws_dl1_access")["deployer"][kind]
    # Retained resources are never deleted.
    whole_life = PHASES[:-1] if row.get("kept") else PHASES
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


@cache
def drift_rows_of_kind(kind: str) -> tuple[Mapping[str, Any], ...]:
    """The rows of (resource, actions) for what `trainyard drift` reads of one kind, and of what others made beside
    it."""
    made = table("aws_dl1_access")["deployer"].get(kind, {}).get("makes", ())
    return tuple(
        {"on": resource, "actions": [action]}
        for action in sorted({action for token in made for action in actions_of_drift(token)})
        for resource in granted_on(action)
    )


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
    calls, further = aws_type_calls(token), SERVED_TYPES[token].provider.actions
    for name in (*phases, *inputs.split()):
        yield from _actions_of_operations(calls.service, calls.for_name(name))
        yield from further.get(name, "").split()


def actions_of_drift(token: str) -> Iterator[str]:
    row = SERVED_TYPES[token]
    if row.live is not None:
        reads = (row.live.read or row.reads[0], row.live.tags, row.live.policy)
        yield from _actions_of_operations(row.service, (read.operation for read in reads if read))
    # What is beside a resource with some inputs only, [deployer] has for the kind of these.
    for found in (found for found in LIVE_BESIDE if found.beside == token and not found.needs):
        # The actions of S3 Control are those of S3.
        yield from _actions_of_operations(found.service.removesuffix("control"), (found.read.operation,))


def actions_of_function(token: str) -> Iterator[str]:
    calls = aws_function_calls(token)
    yield from _actions_of_operations(calls.service, calls.for_name("read"))


def _actions_of_operations(service: str, operations: Iterable[str]) -> Iterator[str]:
    named = table("aws_calls")["actions"].get(service, {})
    yield from (f"{service}:{action}" for operation in operations for action in named.get(operation, [operation]))
