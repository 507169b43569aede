# SPDX-License-Identifier: Apache-2.0
"""Every rule gives the promised verdicts on its examples, and has all required parts."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from policies.describe import rules_page
from policies.rule import (
    RULES,
    JudgedResource,
    JudgedStack,
    PolicyRule,
    StackRule,
    Unknown,
    all_rules,
    resource_rules,
    stack_rules,
)

ROOT = Path(__file__).parents[3]


def examples() -> Iterator[object]:
    for rule in resource_rules():
        for outcome, named in (("pass", rule.passes), ("fail", rule.fails), ("unknown", rule.unknown)):
            for name, resource in named.items():
                yield pytest.param(rule, resource, outcome, id=f"{rule.id}-{outcome}-{name}".replace(" ", "_"))


@pytest.mark.parametrize(("rule", "resource", "outcome"), [*examples()])
def test_the_examples_of_a_rule_get_the_promised_verdicts(
    rule: PolicyRule, resource: JudgedResource, outcome: str
) -> None:
    verdict = rule.verdict(resource)
    assert verdict.outcome == outcome, verdict
    assert resource.type in rule.types
    assert bool(verdict.because) == (outcome != "pass")


def stacks() -> Iterator[object]:
    for rule in stack_rules():
        for outcome, named in (("pass", rule.passes), ("fail", rule.fails), ("unknown", rule.unknown)):
            for name, stack in named.items():
                yield pytest.param(rule, stack, outcome, id=f"{rule.id}-{outcome}-{name}".replace(" ", "_"))


@pytest.mark.parametrize(("rule", "stack", "outcome"), [*stacks()])
def test_the_example_stacks_of_a_rule_get_the_promised_verdicts(
    rule: StackRule, stack: JudgedStack, outcome: str
) -> None:
    said = rule.verdicts(stack)
    assert {verdict.outcome for _, verdict in said} == ({outcome} if outcome != "pass" else set()), said
    assert all(verdict.because for _, verdict in said)
    # A verdict without a resource is on the whole stack, which is told where nobody could know the resource.
    assert all(resource in stack.resources for resource, verdict in said if verdict.outcome == "fail")


@pytest.mark.parametrize("rule", stack_rules(), ids=lambda rule: rule.id)
def test_a_stack_with_unknown_properties_does_not_pass(rule: StackRule) -> None:
    """The resources of the rule's types, with every property unknown; the others as they are."""
    for stack in rule.fails.values():
        hidden = tuple(
            replace(one, properties={key: Unknown(key) for key in one.properties}) if one.type in rule.types else one
            for one in stack.resources
        )
        assert rule.verdicts(replace(stack, resources=hidden)), stack


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_a_rule_is_complete(rule: PolicyRule | StackRule) -> None:
    file = RULES / f"{rule.id.replace('-', '_')}.py"
    assert file.is_file()
    assert rule.passes
    assert rule.fails
    # The options and the type of a resource are always known.
    assert rule.unknown or rule.id in ("unprotected-data", "unjudged-types")
    assert rule.remedy
    assert rule.asks.endswith(".")
    assert len(set(rule.types)) == len(rule.types)


@pytest.mark.parametrize("rule", resource_rules(), ids=lambda rule: rule.id)
def test_a_resource_with_unknown_properties_does_not_pass(rule: PolicyRule) -> None:
    for resource in rule.fails.values():
        hidden = JudgedResource(resource.type, {key: Unknown(key) for key in resource.properties})
        assert rule.verdict(hidden).outcome != "pass" or not resource.properties


def test_ids_are_unique() -> None:
    ids = [rule.id for rule in all_rules()]
    assert len(set(ids)) == len(ids) == len(list(RULES.glob("*.py"))) - 1


def test_a_rule_imports_only_the_pack_the_policy_language_rows_and_the_catalog() -> None:
    ours = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    for file in RULES.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                room = node.module.partition(".")[0]
                rows = re.match(r"components\.(values|\w+\.iam|\w+\.types)\b", node.module)
                known = room in ("policies", "catalog") or rows
                assert room not in ours or known, f"{file.name}: {node.module}"
                assert not room.startswith("pulumi")


def test_the_page_of_policies_is_up_to_date() -> None:
    written = (ROOT / "docs" / "policies.md").read_text()
    assert written == rules_page(), "run: python -m policies.describe > docs/policies.md"
