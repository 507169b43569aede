# SPDX-License-Identifier: Apache-2.0
"""Compares recorded calls of the real AWS provider with our table of its calls, and with the deployer's policy.

tests/contract/recorded has the calls of HashiCorp's provider, which Pulumi's wraps, on a local AWS: all three examples
were made, read, changed and deleted. `examples` has each example's calls, without deletions of what it keeps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from catalog.tables import table
from components.aws.access_report import deployer_policies
from components.aws.plan import aws_dl1_plan
from components.plan.build import plan_of
from schemas.judge import judge_file
from tests.support.examples import stack_file

HERE = Path(__file__).parent
RECORDED: Mapping[str, Any] = json.loads((HERE / "recorded" / "aws-provider-5.52.json").read_text("utf-8"))
CALLS: Mapping[str, Any] = table("aws_provider_calls")
# A changed secret is a new version: its recorded update is a replacement.
REPLACED = {("aws:secretsmanager/secretVersion:SecretVersion", "update"): {"secretsmanager:PutSecretValue"}}


def rows() -> Iterator[tuple[str, Mapping[str, Any], set[str]]]:
    """Each recorded type and function, its row of the table, and its recorded calls."""
    for token, phases in RECORDED["types"].items():
        yield token, CALLS["types"][token], {call for calls in phases.values() for call in calls}
    for token, calls in RECORDED["functions"].items():
        yield token, CALLS["functions"][token], set(calls)


def calls_in(value: Any) -> Iterator[str]:
    """All calls in a part of a row, which is a list or a table by input."""
    if isinstance(value, str):
        yield value
    else:
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from calls_in(one)


def older() -> set[str]:
    """Calls that only older providers make: newer policies need not allow them."""
    parts = [*CALLS["types"].values(), *CALLS["functions"].values()]
    return {named(row, call) for row in parts for call in calls_in(row.get("before", ()))}


def named(row: Mapping[str, Any], call: str) -> str:
    return call if ":" in call else f"{row['service']}:{call}"


@pytest.mark.parametrize(
    ("token", "row", "seen"), list(rows()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_table_has_every_recorded_call(token: str, row: Mapping[str, Any], seen: set[str]) -> None:
    parts = ("create", "read", "delete", "with", "when", "before", "tolerated")
    known = {named(row, call) for part in parts for call in calls_in(row.get(part, ()))}
    assert seen - known == set(), token


@pytest.mark.parametrize("token", RECORDED["types"])
def test_each_step_of_a_resource_has_its_recorded_calls(token: str) -> None:
    """Creations and updates end with a read, and deletions wait by reading. Calls that depend on inputs may be in any
    of them."""
    row = CALLS["types"][token]
    maybe = {named(row, call) for part in ("with", "when", "before") for call in calls_in(row.get(part, ()))}
    read = {named(row, call) for call in row["read"]}
    for phase, seen in RECORDED["types"][token].items():
        own = {named(row, call) for call in row.get(phase, ())}
        assert set(seen) - own - read - maybe <= REPLACED.get((token, phase), set()), phase
        # A newer provider has replaced some calls by others.
        assert row.get("before") or own <= set(seen), phase


@pytest.mark.parametrize("name", RECORDED["examples"])
def test_the_deployer_may_make_every_recorded_call(name: str) -> None:
    statements = [
        statement
        for policy in deployer_policies(aws_dl1_plan(plan_of(judge_file(stack_file(name)))))
        for statement in (policy.document or {}).get("Statement", ())
        if statement["Effect"] == "Allow"
    ]
    patterns = {
        one for row in statements for one in ([row["Action"]] if isinstance(row["Action"], str) else row["Action"])
    }
    actions = table("aws_calls")["actions"]
    missing = set()
    for call in RECORDED["examples"][name]:
        service, _, operation = call.partition(":")
        for action in actions.get(service, {}).get(operation, [operation]):
            if call not in older() and not any(fnmatchcase(f"{service}:{action}", one) for one in patterns):
                missing.add(call)
    assert missing == set()
