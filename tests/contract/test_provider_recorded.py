# SPDX-License-Identifier: Apache-2.0
"""Compares recorded calls of the real AWS provider with the calls of our rows, and with the deployer's policy.

tests/contract/recorded has the calls of HashiCorp's provider, which Pulumi's wraps, on a local AWS: all three examples
were made, read, changed and deleted. `examples` has each example's calls, without deletions of what it keeps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from catalog.tables import table
from components.aws.access_report import deployer_policies
from components.aws.plan import aws_dl1_plan
from components.aws.types import SERVED_TYPES
from components.aws.types.functions import FUNCTIONS
from components.aws.types.provider_calls import aws_function_calls, aws_type_calls
from components.plan.build import plan_of
from schemas.judge import judge_file
from tests.support.examples import stack_file

HERE = Path(__file__).parent
RECORDED: Mapping[str, Any] = json.loads((HERE / "recorded" / "aws-provider-5.52.json").read_text("utf-8"))
# A changed secret is a new version: its recorded update is a replacement.
REPLACED = {("aws:secretsmanager/secretVersion:SecretVersion", "update"): {"secretsmanager:PutSecretValue"}}


def named(service: str, *parts: Iterable[str]) -> set[str]:
    return {f"{service}:{call}" for part in parts for call in part}


def older_calls(token: str) -> set[str]:
    """Calls that only older providers make: newer policies need not allow them."""
    if function := FUNCTIONS.get(token):
        return named(function.service, *(calls.split() for calls in function.before.values()))
    return named(
        SERVED_TYPES[token].service, *(calls.split() for calls in SERVED_TYPES[token].provider.before.values())
    )


@pytest.mark.parametrize("token", [*RECORDED["types"], *RECORDED["functions"]])
def test_the_row_has_every_recorded_call(token: str) -> None:
    if phases := RECORDED["types"].get(token):
        calls, seen = aws_type_calls(token), {call for calls in phases.values() for call in calls}
    else:
        calls, seen = aws_function_calls(token), set(RECORDED["functions"][token])
    assert seen - named(calls.service, calls.every_call()) - older_calls(token) == set()


@pytest.mark.parametrize("token", RECORDED["types"])
def test_each_step_of_a_resource_has_its_recorded_calls(token: str) -> None:
    """Creations and updates end with a read, and deletions wait by reading. Calls that depend on inputs may be in any
    of them."""
    calls, older = aws_type_calls(token), older_calls(token)
    maybe = older | named(calls.service, *calls.with_input.values(), *calls.when.values())
    read = named(calls.service, calls.phases["read"])
    for phase, seen in RECORDED["types"][token].items():
        own = named(calls.service, calls.phases.get(phase, ()))
        assert set(seen) - own - read - maybe <= REPLACED.get((token, phase), set()), phase
        # A newer provider has replaced some calls by others.
        assert older or own <= set(seen), phase


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
    older = set().union(*(older_calls(token) for token in (*SERVED_TYPES, *FUNCTIONS)))
    missing = set()
    for call in RECORDED["examples"][name]:
        service, _, operation = call.partition(":")
        for action in actions.get(service, {}).get(operation, [operation]):
            if call not in older and not any(fnmatchcase(f"{service}:{action}", one) for one in patterns):
                missing.add(call)
    assert missing == set()
