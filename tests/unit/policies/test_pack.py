# SPDX-License-Identifier: Apache-2.0
"""The pack as the engine calls it: messages in, diagnostics out."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from policies.pack import Pack, analyzer_pb2, plain_properties
from policies.rule import JudgedResource, StackRule, Unknown, all_rules, stack_rules
from policies.settings import NOT_KNOWN_YET
from tests.support.hostile import PLANTED, orders
from tests.support.policy_examples import LATER, asked, asked_of_stack, configured, named

BUCKET = "oci:ObjectStorage/bucket:Bucket"
TAGS = {"stack": "s", "team": "t", "environment": "dev"}
SOUND = {"versioning": "Enabled", "freeformTags": TAGS}
OPEN = {**SOUND, "accessType": "ObjectRead"}
TODAY = date(2026, 11, 26)
LEVELS = {"advisory": analyzer_pb2.ADVISORY, "mandatory": analyzer_pb2.MANDATORY}
WORDS = {number: word for word, number in LEVELS.items()}


def pack(settings: Mapping[str, Any] | None = None, **config: Any) -> Pack:
    made = Pack(lambda: TODAY)
    made.ConfigureStack(configured(**config), None)
    if settings:
        request = analyzer_pb2.ConfigureAnalyzerRequest()
        for rule, said in settings.items():
            request.policyConfig[rule].enforcementLevel = LEVELS[said.get("enforcementLevel", "mandatory")]
            request.policyConfig[rule].properties.update({k: v for k, v in said.items() if k != "enforcementLevel"})
        made.Configure(request, None)
    return made


def resource(kind: str, properties: Mapping[str, Any], protect: bool = True) -> JudgedResource:
    return JudgedResource(kind, properties, "r", f"urn:pulumi:s::p::{kind}::r", protect)


def reports(of: Pack, kind: str, properties: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """(level, message without the rule's demand) of each diagnostic."""
    answer = of.Analyze(asked(resource(kind, properties)), None)
    assert all(one.message.startswith(f"{one.description}\n") for one in answer.diagnostics)
    return {
        one.policyName: (WORDS[one.enforcementLevel], one.message.removeprefix(f"{one.description}\n"))
        for one in answer.diagnostics
    }


def test_a_policy_for_each_rule_with_its_level_and_what_may_be_set() -> None:
    info = Pack().GetAnalyzerInfo(None, None)
    policies = {one.name: one for one in info.policies}
    assert policies.pop(NOT_KNOWN_YET).enforcementLevel == analyzer_pb2.ADVISORY
    assert {name: WORDS[one.enforcementLevel] for name, one in policies.items()} == {
        rule.id: rule.level for rule in all_rules()
    }
    of_stacks = {name for name, one in policies.items() if one.policy_type == analyzer_pb2.POLICY_TYPE_STACK}
    assert of_stacks == {rule.id for rule in stack_rules()}
    assert {"levels", "waivable", "ceilings", "stackCeilings", "prices"} == {
        *policies["budget"].configSchema.properties.fields
    }


def test_a_failure_tells_the_reason_and_the_remedy() -> None:
    said = reports(pack(), BUCKET, {"accessType": "ObjectRead", "versioning": "Enabled"})
    assert said.keys() == {"public-bucket", "missing-tags"}
    level, message = said["public-bucket"]
    assert level == "mandatory"
    assert message.startswith("r: accessType ObjectRead lets anybody read objects\nremedy: set accessType:")


def test_messages_of_policies_are_escaped() -> None:
    waivers = {"public-bucket": {"reason": PLANTED, "until": "2026-12-31"}}
    of = pack(waivers=waivers, environment=PLANTED)
    said = [
        *reports(of, "oci:Identity/policy:Policy", {"statements": [PLANTED, f"allow group {PLANTED}"]}).values(),
        *reports(
            of, BUCKET, {"accessType": PLANTED, "versioning": PLANTED, "freeformTags": {PLANTED: PLANTED}}
        ).values(),
    ]
    planted = JudgedResource("trainyard:index:Run", {"image": PLANTED}, PLANTED, PLANTED)
    told = [message for _, message in said] + [
        one.message for one in of.AnalyzeStack(asked_of_stack([planted]), None).diagnostics
    ]
    assert any("planted" in message for message in told)
    assert [message for message in told if orders(message.encode())] == []


def test_what_is_unknown_is_a_remark_and_no_failure() -> None:
    said = reports(pack(), BUCKET, {**SOUND, "accessType": Unknown()})
    assert said == {NOT_KNOWN_YET: ("advisory", "r: public-bucket: `accessType` is not known yet")}


def test_other_types_are_left_alone() -> None:
    assert reports(pack(), "gcp:storage/bucket:Bucket", {"accessType": "ObjectRead"}) == {}


def test_properties_are_plain_values_with_the_path_of_what_is_unknown() -> None:
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "s3cret"}
    given = JudgedResource(BUCKET, {"rules": [{"min": 1.0}, {"min": LATER}, LATER], "name": "n", "key": secret})
    read = plain_properties(asked(given).properties)
    assert read["rules"][0] == {"min": 1}
    assert (read["name"], read["key"]) == ("n", "s3cret")
    assert repr(read["rules"][1]["min"]) == repr(Unknown("rules[1].min"))
    assert repr(read["rules"][2]) == repr(Unknown("rules[2]"))


def test_a_waived_failure_is_a_remark_that_names_the_waiver() -> None:
    waived = {"public-bucket": {"reason": "a public data set", "until": "2026-11-26"}}
    level, message = reports(pack(waivers=waived), BUCKET, OPEN)["public-bucket"]
    assert level == "advisory"
    assert message.startswith("waived until 2026-11-26: a public data set\nr: accessType ObjectRead lets anybody")


@pytest.mark.parametrize(
    ("waiver", "said"),
    [
        ({"reason": "a public data set", "until": "2026-11-25"}, "its waiver ended on 2026-11-25"),
        ({"reason": " ", "until": "2026-12-31"}, ""),
        ({"reason": "a public data set", "until": "soon"}, ""),
        ({"reason": "a public data set"}, ""),
        ("always", ""),
    ],
)
def test_an_ended_or_invalid_waiver_is_ignored(waiver: Any, said: str) -> None:
    level, message = reports(pack(waivers={"public-bucket": waiver}), BUCKET, OPEN)["public-bucket"]
    assert level == "mandatory"
    assert said in message
    assert "waived" not in message


def test_a_waiver_ends_while_the_pack_runs() -> None:
    today = [TODAY]
    of = Pack(lambda: today[0])
    of.ConfigureStack(configured(waivers={"public-bucket": {"reason": "a trial", "until": "2026-11-26"}}), None)
    assert reports(of, BUCKET, OPEN)["public-bucket"][0] == "advisory"
    today[0] = date(2026, 11, 27)
    assert reports(of, BUCKET, OPEN)["public-bucket"][0] == "mandatory"


def test_a_rule_may_be_one_that_nobody_waives() -> None:
    waived = {"public-bucket": {"reason": "a public data set", "until": "2026-12-31"}}
    level, message = reports(pack({"public-bucket": {"waivable": False}}, waivers=waived), BUCKET, OPEN)[
        "public-bucket"
    ]
    assert level == "mandatory"
    assert "lets nobody waive this rule" in message


@pytest.mark.parametrize(
    ("levels", "environment", "level"),
    [
        ({"dev": "advisory"}, "dev", "advisory"),
        ({"dev": "advisory"}, "prod", "mandatory"),
        ({"prod": "mandatory", "*": "advisory"}, "dev", "advisory"),
        ({"dev": "disabled"}, "dev", None),
    ],
)
@pytest.mark.parametrize("by", ["configuration", "tag"])
def test_a_level_may_depend_on_the_environment(
    levels: dict[str, str], environment: str, level: str | None, by: str
) -> None:
    config = {"environment": environment} if by == "configuration" else {}
    properties = {**OPEN, "freeformTags": {**TAGS, "environment": environment}}
    said = reports(pack({"public-bucket": {"levels": levels}}, **config), BUCKET, properties)
    assert said.get("public-bucket", (None,))[0] == level


def test_a_stack_is_judged_by_the_inputs_that_were_asked_about() -> None:
    """At the end the engine sends the outputs of resources, which also have defaults of the cloud."""
    of = pack()
    group = resource("oci:Identity/dynamicGroup:DynamicGroup", {"matchingRule": "resource.type = 'datasciencejobrun'"})
    of.Analyze(asked(group), None)
    became = resource(group.type, {"matchingRule": Unknown()})
    [said] = of.AnalyzeStack(asked_of_stack([became]), None).diagnostics
    assert (said.policyName, said.urn, WORDS[said.enforcementLevel]) == ("dynamic-group-scope", group.urn, "mandatory")
    [later] = pack().AnalyzeStack(asked_of_stack([became]), None).diagnostics
    assert later.policyName == NOT_KNOWN_YET


@pytest.mark.parametrize("rule", stack_rules(), ids=lambda rule: rule.id)
def test_the_engine_gets_the_results_of_rules_for_stacks(rule: StackRule) -> None:
    for outcome, examples in (("passes", rule.passes), ("fails", rule.fails), ("unknown", rule.unknown)):
        for name, stack in examples.items():
            settings = {rule.id: {"enforcementLevel": rule.level, **stack.settings}}
            of = pack(settings, environment=stack.environment, access={"mode": stack.access_mode})
            answer = of.AnalyzeStack(asked_of_stack(named(stack.resources, "r")), None)
            told = [one.message for one in answer.diagnostics if rule.id in (one.policyName, *one.message.split(": "))]
            heard = {one.policyName for one in answer.diagnostics if one.message in told}
            assert heard == {"passes": set(), "fails": {rule.id}, "unknown": {NOT_KNOWN_YET}}[outcome], (name, told)


def test_the_start_imports_the_rows_of_no_provider() -> None:
    program = "import sys\nfrom policies.rule import all_rules\nall_rules()\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if re.fullmatch(r"components\.\w+\.types", name)] == []
