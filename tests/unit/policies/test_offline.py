# SPDX-License-Identifier: Apache-2.0
"""Without the engine, a review gets the same verdicts as the engine, on every example of every rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import pytest

from components.platform.review import SECRET, ReviewedResource, Snapshot
from policies.offline import results_of_snapshot
from policies.pack import Pack, analyzer_pb2, result_message
from policies.rule import JudgedResource, PolicyRule, StackRule, resource_rules, stack_rules
from policies.settings import NOT_KNOWN_YET, PolicyConfigError
from tests.support.policy_examples import asked, asked_of_stack, configured, named, snapshot

BUCKET = "oci:ObjectStorage/bucket:Bucket"
TODAY = date(2026, 11, 26)
LEVELS = {"advisory": analyzer_pb2.ADVISORY, "mandatory": analyzer_pb2.MANDATORY, "disabled": analyzer_pb2.DISABLED}
KINDS = ("passes", "fails", "unknown")
WAIVERS = {"public-bucket": {"reason": "a public data set", "until": "2026-12-31"}}
ENDED = {"public-bucket": {"reason": "a public data set", "until": "2026-11-25"}}
Heard = set[tuple[str, int, str, str]]


def by_engine(resources: Sequence[JudgedResource], config: Mapping[str, Any], **plan: Any) -> Heard:
    """(policy, level, resource, message) of each diagnostic."""
    pack = Pack(lambda: TODAY)
    pack.ConfigureStack(configured(**plan), None)
    request = analyzer_pb2.ConfigureAnalyzerRequest()
    every: tuple[PolicyRule | StackRule, ...] = (*resource_rules(), *stack_rules())
    for rule in every:
        said = dict(config.get(rule.id, {}))
        request.policyConfig[rule.id].enforcementLevel = LEVELS[said.pop("enforcementLevel", rule.level)]
        request.policyConfig[rule.id].properties.update(said)
    pack.Configure(request, None)
    answers = [
        *(pack.Analyze(asked(one), None) for one in resources),
        pack.AnalyzeStack(asked_of_stack(resources), None),
    ]
    return {
        (one.policyName, one.enforcementLevel, one.urn, one.message.removeprefix(f"{one.description}\n"))
        for answer in answers
        for one in answer.diagnostics
    }


def offline(resources: Sequence[JudgedResource], config: Mapping[str, Any], **plan: Any) -> Heard:
    return {
        (NOT_KNOWN_YET if one.outcome == "unknown" else one.rule, LEVELS[one.level], one.urn, result_message(one))
        for one in results_of_snapshot(snapshot(resources, **plan), config, TODAY)
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "plan",
    [{}, {"environment": "dev", "waivers": WAIVERS}, {"environment": "dev", "waivers": ENDED}],
    ids=["plain", "waived", "ended"],
)
def test_examples_of_resources_get_the_same_verdicts(kind: str, plan: dict[str, Any]) -> None:
    resources = named((one for rule in resource_rules() for one in getattr(rule, kind).values()), kind)
    heard = by_engine(resources, {}, **plan)
    assert heard == offline(resources, {}, **plan)
    assert heard


@pytest.mark.parametrize("kind", KINDS)
def test_examples_of_stacks_get_the_same_verdicts(kind: str) -> None:
    for rule in stack_rules():
        for stack in getattr(rule, kind).values():
            resources = named(stack.resources, rule.id)
            config = {rule.id: stack.settings}
            plan = {"environment": stack.environment, "access": {"mode": stack.access_mode}}
            assert by_engine(resources, config, **plan) == offline(resources, config, **plan)


def bucket(**properties: Any) -> JudgedResource:
    [made] = named([JudgedResource(BUCKET, {"accessType": "ObjectRead", **properties}, protect=True)], "data")
    return made


def test_a_result_says_all_that_a_report_needs() -> None:
    [result] = [
        one
        for one in results_of_snapshot(snapshot([bucket()], waivers=WAIVERS), {}, TODAY)
        if one.rule == "public-bucket"
    ]
    assert (result.outcome, result.level, result.resource) == ("waived", "advisory", "data-0")
    assert result.waiver == "waived until 2026-12-31: a public data set"
    assert result.because == "accessType ObjectRead lets anybody read objects"
    assert result.remedy
    [result] = [
        one
        for one in results_of_snapshot(snapshot([bucket()], waivers=WAIVERS), {}, date(2027, 1, 1))
        if one.rule == "public-bucket"
    ]
    assert (result.outcome, result.level, result.waiver) == ("fail", "mandatory", "its waiver ended on 2026-12-31")
    assert "its waiver ended on 2026-12-31" in result.because


def test_a_masked_secret_is_unknown_and_never_a_pass() -> None:
    protocol = {"secrets": {"key": SECRET}, "parameters": {"note": "plain"}, "taskRoles": {}}
    run = ReviewedResource("trainyard:index:Run", "r", "urn", "", {"platform": "openpai", "protocol": protocol})
    found = results_of_snapshot(Snapshot("dev", "openpai", {}, (run,)), {}, TODAY)
    [secret] = [one for one in found if one.rule == "plain-secrets"]
    assert secret.outcome == "unknown"
    assert secret.because == "`protocol.secrets.key` is a secret, which only a deployment reads"


def test_one_level_for_all_rules() -> None:
    found = results_of_snapshot(snapshot([bucket()]), {"all": "advisory", "missing-tags": "mandatory"}, TODAY)
    assert {one.rule: one.level for one in found if one.outcome == "fail"} == {
        "public-bucket": "advisory",
        "missing-tags": "mandatory",
        "unversioned-bucket": "advisory",
    }


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"public-buckets": "advisory"},
            "`public-buckets` is not a rule of the pack .*: did you mean `public-bucket`?",
        ),
        ({"public-bucket": "sometimes"}, "'sometimes' is not a level"),
        ({"budget": {"ceilings": {"dev": {"nodes": "many"}}}}, "ceilings.dev.nodes: 'many' is not of type"),
        ({"public-bucket": {"ceilings": {}}}, "Additional properties are not allowed"),
    ],
)
def test_a_wrong_configuration_says_what_is_wrong(config: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyConfigError, match=said):
        results_of_snapshot(snapshot([]), config, TODAY)
