# SPDX-License-Identifier: Apache-2.0
"""Which inputs replace a resource: by the rows of types, by the program's options, and for secrets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.plan.model import RUN_TYPE as RUN
from components.platform.replacing import replacing_inputs
from components.platform.review import SECRET, ReviewedResource
from components.values.resource_types import resource_types_of_provider
from localcloud.plugins.resource_table import diff_rules_of_type
from tests.support.reviews import resource

JOB, GROUP_RULE = "oci:DataScience/job:Job", "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"


def replaced(token: str, before: dict[str, Any], after: dict[str, Any], **options: Any) -> tuple[str, ...]:
    return replacing_inputs(resource(token, **before), replace(resource(token, **after), **options))


@pytest.mark.parametrize("token", [*resource_types_of_provider("oci"), *resource_types_of_provider("aws")])
def test_each_row_replaces_as_the_plugins_do(token: str) -> None:
    rules = diff_rules_of_type(token, frozenset())
    for path in rules.replace:
        assert replaced(token, {path: "old"} if "." not in path else _at(path, "old"), _at(path, "new")), path
        assert not replaced(token, _at(path, "old"), _at(path, "old"))
    assert not replaced(token, {"somethingElse": "old"}, {"somethingElse": "new"})


def test_a_plugin_serves_no_type_without_a_row() -> None:
    with pytest.raises(LookupError, match="no row describes oci:Core/drg:Drg"):
        diff_rules_of_type("oci:Core/drg:Drg", frozenset())


def _at(path: str, value: Any) -> dict[str, Any]:
    first, _, rest = path.partition(".")
    return {first: _at(rest, value) if rest else value}


def test_paths_say_which_input_it_was() -> None:
    before = {"displayName": "a", "jobConfigurationDetails": {"jobType": "DEFAULT", "maximumRuntimeInMinutes": "60"}}
    after = {"displayName": "b", "jobConfigurationDetails": {"jobType": "DEFAULT", "maximumRuntimeInMinutes": "90"}}
    assert replaced(JOB, before, after) == ("jobConfigurationDetails.maximumRuntimeInMinutes",)
    assert replaced(JOB, before, after, ignored=("jobConfigurationDetails.maximumRuntimeInMinutes",)) == ()


def test_an_order_that_means_nothing_replaces_nothing() -> None:
    token = "oci:Core/subnet:Subnet"
    assert replaced(token, {"securityListIds": ["a", "b"]}, {"securityListIds": ["b", "a"]}) == ()
    assert replaced(token, {"dnsLabel": "a"}, {}) == (), "the cloud fills it in"


def test_one_variable_less_is_a_change() -> None:
    before = {"jobConfigurationDetails": {"environmentVariables": {"A": "1", "B": "2"}}}
    after = {"jobConfigurationDetails": {"environmentVariables": {"A": "1"}}}
    assert replaced(JOB, before, after) == ("jobConfigurationDetails.environmentVariables.B",)


def test_options_of_the_program_count() -> None:
    token = "aws:ec2/vpcEndpoint:VpcEndpoint"
    assert replaced(token, {"subnetIds": ["a"]}, {"subnetIds": ["b"]}) == ()
    chosen = replaced(token, {"subnetIds": ["a"]}, {"subnetIds": ["b"]}, replaced_for=("subnetIds",))
    assert chosen == ("subnetIds",)
    old = replace(resource(token), trigger="a")
    assert replacing_inputs(old, replace(old, trigger="b")) == ("replacementTrigger",)
    assert replacing_inputs(replace(old, trigger=""), old) == ()


def test_another_kind_of_peer_is_another_rule() -> None:
    assert replaced(GROUP_RULE, {"cidrIpv4": "10.0.0.0/8"}, {"cidrIpv4": "10.0.0.0/16"}) == ()
    assert replaced(GROUP_RULE, {"cidrIpv4": "10.0.0.0/8"}, {"cidrIpv6": "::/0"}) == ("cidrIpv4", "cidrIpv6")


def test_another_region_replaces_what_has_one() -> None:
    assert replaced("aws:ec2/subnet:Subnet", {"region": "us-east-1"}, {"region": "us-west-2"}) == ("region",)


@pytest.mark.parametrize("platform", ["oci", "aws-dl1", "openpai"])
def test_a_run_starts_again_for_all_but_what_may_change(platform: str) -> None:
    base = {"platform": platform, "attempt": 1, "tags": {"a": "b"}, "until": "started"}
    assert replaced(RUN, base, {**base, "attempt": 2}) == ("attempt",)
    assert replaced(RUN, base, {**base, "tags": {}, "until": "finished", "displayName": "other"}) == ()
    own = {"oci": (), "aws-dl1": ("secretVersion",), "openpai": ("token", "certificate")}[platform]
    assert replaced(RUN, base, {**base, **dict.fromkeys(own, "x")}) == (
        ("secretVersion",) if platform == "aws-dl1" else ()
    )


def test_a_secret_that_changed_counts_and_is_not_shown() -> None:
    before: ReviewedResource = replace(resource(JOB, jobArtifact=SECRET), secrets={"jobArtifact": "1"})
    assert replacing_inputs(before, replace(before, secrets={"jobArtifact": "2"})) == ("jobArtifact",)
    assert replacing_inputs(before, before) == ()
    tag = replace(before, secrets={"displayName": "1"})
    assert replacing_inputs(tag, replace(tag, secrets={"displayName": "2"})) == ()
