# SPDX-License-Identifier: Apache-2.0
"""The rules as the engine's own library calls them."""

from collections.abc import Mapping
from typing import Any

from pulumi_policy import EnforcementLevel, ResourceValidationArgs, ResourceValidationPolicy
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy

from policies.pack import NOT_KNOWN_YET, policies, resource
from policies.rule import Unknown, rules
from tests.support.hostile import PLANTED, orders

BUCKET = "oci:ObjectStorage/bucket:Bucket"


def arguments(kind: str, properties: Mapping[str, Any]) -> ResourceValidationArgs:
    proxies = unknown_checking_proxy(dict(properties))
    return ResourceValidationArgs(kind, proxies, f"urn:pulumi:s::p::{kind}::r", "r", None, None)


def reports(kind: str, properties: Mapping[str, Any]) -> dict[str, list[str]]:
    """What each policy that had something to say said."""
    said: dict[str, list[str]] = {}
    for policy in policies():
        assert isinstance(policy, ResourceValidationPolicy)
        told = said.setdefault(policy.name, [])
        policy.validate(arguments(kind, properties), lambda message, urn=None, told=told: told.append(message))
    return {name: messages for name, messages in said.items() if messages}


def test_a_policy_for_each_rule_with_its_level() -> None:
    levels = {policy.name: policy.enforcement_level for policy in policies()}
    assert levels.pop(NOT_KNOWN_YET) == EnforcementLevel.ADVISORY
    assert levels == {rule.id: EnforcementLevel(rule.level) for rule in rules()}


def test_a_failure_tells_the_reason_and_the_remedy() -> None:
    said = reports(BUCKET, {"accessType": "ObjectRead", "versioning": "Enabled"})
    assert said.keys() == {"public-bucket", "missing-tags"}
    [message] = said["public-bucket"]
    assert message.startswith("r: accessType ObjectRead lets anybody read objects\nremedy: set accessType:")


def test_nothing_that_a_policy_says_gives_orders() -> None:
    said = reports("oci:Identity/policy:Policy", {"statements": [PLANTED, f"allow group {PLANTED}"], "name": PLANTED})
    said |= reports(BUCKET, {"accessType": PLANTED, "versioning": PLANTED, "freeformTags": {PLANTED: PLANTED}})
    messages = [message for told in said.values() for message in told]
    assert any("planted" in message for message in messages)
    assert [message for message in messages if orders(message.encode())] == []


def test_what_is_unknown_is_a_remark_and_no_failure() -> None:
    tags = {"stack": "s", "team": "t", "environment": "e"}
    said = reports(BUCKET, {"accessType": UNKNOWN_STRING_VALUE, "versioning": "Enabled", "freeformTags": tags})
    assert said == {NOT_KNOWN_YET: ["r: public-bucket: `accessType` is not known yet"]}


def test_other_types_are_left_alone() -> None:
    assert reports("gcp:storage/bucket:Bucket", {"accessType": "ObjectRead"}) == {}


def test_properties_arrive_as_plain_values_with_the_path_of_what_is_unknown() -> None:
    given = {"rules": [{"min": 1.0}, {"min": UNKNOWN_STRING_VALUE}, UNKNOWN_STRING_VALUE], "name": "n"}
    plain = resource(arguments(BUCKET, given)).properties
    assert plain["rules"][0] == {"min": 1.0}
    assert plain["name"] == "n"
    assert repr(plain["rules"][1]["min"]) == repr(Unknown("rules[1].min"))
    assert repr(plain["rules"][2]) == repr(Unknown("rules[2]"))
