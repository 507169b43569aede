# SPDX-License-Identifier: Apache-2.0
"""Which calls of AWS's API the provider `aws` makes for each resource type and function.

Most follow from the calls that a row has for the local cloud's plugin, which makes no others
(tests/flows/test_plugin_aws.py). The deployer's least policy is computed from them. A creation and an update end with
a read, and a deletion waits by reading.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from components.aws.types import SERVED_TYPES
from components.aws.types.functions import FUNCTIONS

PHASES = ("create", "read", "delete")


class ProviderCalls(NamedTuple):
    """The operations of a type or a function, by their names without the service."""

    service: str
    phases: Mapping[str, frozenset[str]]
    # By input: calls when it is given or when it changes.
    with_input: Mapping[str, frozenset[str]]
    # By condition: calls that depend on what is found, such as `spot`.
    when: Mapping[str, frozenset[str]]

    def for_name(self, name: str) -> frozenset[str]:
        """The calls of a phase, an input or a condition."""
        return frozenset().union(*(calls.get(name, ()) for calls in (self.phases, self.with_input, self.when)))

    def every_call(self) -> frozenset[str]:
        parts = (self.phases, self.with_input, self.when)
        return frozenset().union(*(calls for part in parts for calls in part.values()))


@cache
def aws_type_calls(token: str) -> ProviderCalls:
    row = SERVED_TYPES[token]
    calls: dict[str, set[str]] = defaultdict(set)
    calls["create"] = {row.create.operation}
    calls["delete"] = {read.operation for read in row.delete.before} | {row.delete.operation} - {""}
    for read in row.reads:
        calls[read.only_for or "read"].add(read.operation)
    for change in row.changes:
        for name in change.inputs:
            calls[name].add(change.operation)
            calls[change.undo_only_for or name] |= {change.undo} - {""}
    for listed in row.lists:
        calls[listed.input].add(listed.operation)
    if row.tagging:
        calls["tags"] |= {row.tagging.tag, row.tagging.untag}
    for name, more in row.provider.calls.items():
        calls[name] |= set(more.split())
    # What a launch template holds counts as an input, by the name `data`.
    return _by_kind(row.service, calls, {*row.inputs, "data"})


@cache
def aws_function_calls(token: str) -> ProviderCalls:
    function = FUNCTIONS[token]
    return _by_kind(function.service, {"read": {function.operation, *function.unused_calls}}, ())


def _by_kind(service: str, calls: Mapping[str, Iterable[str]], inputs: Iterable[str]) -> ProviderCalls:
    # S3 Control's actions are S3's.
    named = {name: frozenset(call.removeprefix("s3control:") for call in part) for name, part in calls.items() if part}
    phases = {phase: named.pop(phase, frozenset()) for phase in PHASES}
    given = {name: named.pop(name) for name in inputs if name in named}
    return ProviderCalls(service, phases, given, named)
