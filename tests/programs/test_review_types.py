# SPDX-License-Identifier: Apache-2.0
"""No resource of any type that the providers ship is made, changed or removed in silence, if the type can do harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import pytest

from components.platform.review import ReviewedResource, Snapshot
from components.values.resource_types import all_resource_types
from tests.support.reviews import resource
from tests.support.type_abilities import EXCEPTIONS, MODULES, PACKAGES, abilities_of_type, tokens_of_package
from trainyard.review.evaluate import CheckFindings, ReviewContext, review_snapshots
from trainyard.review.gates import find_tripped_gates, parse_gates
from trainyard.review.model import Review

PLATFORMS = {"pulumi_aws": "aws-dl1", "pulumi_oci": "oci"}
# Types with a row, of which a new resource without inputs does nothing by itself.
NOTHING_ALONE = frozenset(
    {
        "aws:ec2/eip:Eip",
        "aws:ec2/internetGateway:InternetGateway",
        "aws:ec2/route:Route",
        "aws:ec2/routeTable:RouteTable",
        "aws:ec2/routeTableAssociation:RouteTableAssociation",
        "aws:ec2/securityGroup:SecurityGroup",
        "aws:ec2/subnet:Subnet",
        "aws:ec2/vpc:Vpc",
        "aws:ecr/repository:Repository",
        "aws:iam/role:Role",
    }
)

HARMLESS = sorted(token for token, row in all_resource_types().items() if row.harmless)


def side(platform: str, *added: ReviewedResource) -> Snapshot:
    log = resource("oci:Logging/logGroup:LogGroup", "logs")
    return Snapshot("dev", platform, {"stack": "dev"}, (log, *added))


def reviewed(before: Snapshot, after: Snapshot) -> Review:
    return review_snapshots(before, after, "changed", CheckFindings("file"), ReviewContext(date(2026, 11, 26)))


@pytest.mark.parametrize("package", PACKAGES)
def test_no_type_that_can_do_harm_is_silent(package: str) -> None:
    platform = PLATFORMS[package]
    made = {token: resource(token, "more", more="mallory") for token in tokens_of_package(package)}
    plain, with_all = side(platform), side(platform, *made.values())
    others = side(platform, *(replace(one, inputs={"more": "another"}) for one in made.values()))
    named = {}
    for kind, (before, after) in {
        "made": (plain, with_all), "changed": (with_all, others), "removed": (with_all, plain),
    }.items():  # fmt: skip
        review = reviewed(before, after)
        in_sections = {change.type for change in review.of_kind("replaced", "deleted", "kept", "blocked")}
        named[kind] = {change.type for change in review.unknown_changes} | in_sections
        gates = {gate.gate for gate in find_tripped_gates([review], parse_gates("exposure,access-gain"))}
        assert gates == {"exposure", "access-gain"}, kind
    silent = [
        f"{token} ({abilities_of_type(token)}) {kind}"
        for token in made
        for kind, said in named.items()
        if token not in said and abilities_of_type(token) and not (kind == "made" and token in NOTHING_ALONE)
    ]
    assert silent == []


def test_the_table_describes_every_module_once_and_only_types_that_there_are() -> None:
    known = {token for package in PACKAGES for token in tokens_of_package(package)}
    listed = " ".join(MODULES.values()).split()
    assert len(listed) == len(set(listed))
    assert set(listed) == {token.split(":")[1].partition("/")[0] for token in known}
    assert EXCEPTIONS.keys() <= known
    assert known >= NOTHING_ALONE


@pytest.mark.parametrize("token", HARMLESS)
def test_a_type_that_is_called_harmless_can_neither_grant_nor_open(token: str) -> None:
    assert not set(abilities_of_type(token)) & {"g", "o"}, "the table says otherwise"


def inputs_of(review: Review) -> Mapping[str, tuple[str, ...]]:
    return {change.name: tuple(given.path for given in change.inputs) for change in review.unknown_changes}


def test_inputs_that_a_row_does_not_name_are_named_with_their_values() -> None:
    bucket = resource("aws:s3/bucket:Bucket", "data", bucket="data", tags={"a": "b"})
    other = replace(bucket, inputs={"bucket": "data", "tags": {"a": "c"}, "replicationConfiguration": {"role": "r"}})
    review = reviewed(side("aws-dl1", bucket), side("aws-dl1", other))
    assert inputs_of(review) == {"data": ("replicationConfiguration.role",)}
    assert review.unknown_changes[0].inputs[0].after == "r"
    assert not reviewed(side("aws-dl1", bucket), side("aws-dl1", bucket)).has_decisions


def test_what_follows_from_the_plan_is_named_where_the_plan_stays_the_same() -> None:
    job = resource("oci:DataScience/job:Job", "resnet", jobConfigurationDetails={"commandLineArguments": "a"})
    other = replace(job, inputs={"jobConfigurationDetails": {"commandLineArguments": "b"}})
    same_plan = reviewed(side("oci", job), side("oci", other))
    assert inputs_of(same_plan) == {"resnet": ("jobConfigurationDetails.commandLineArguments",)}
    planned = replace(side("oci", other), plan={"stack": "dev", "jobs": {}})
    assert inputs_of(reviewed(side("oci", job), planned)) == {}


def test_another_provider_of_a_resource_is_named() -> None:
    policy = resource("oci:Identity/policy:Policy", "runs", statements=[])
    before, after = (replace(policy, provider=provider) for provider in ("", "urn:home"))
    assert inputs_of(reviewed(side("oci", before), side("oci", after))) == {"runs": ("(provider)",)}
    old_release = replace(policy, provider=None)
    assert inputs_of(reviewed(side("oci", old_release), side("oci", after))) == {}


def test_a_provider_with_an_endpoint_of_its_own_is_named() -> None:
    provider = resource("pulumi:providers:aws", "more", region="us-east-1", endpoints=[{"s3": "https://evil.example"}])
    assert inputs_of(reviewed(side("aws-dl1"), side("aws-dl1", provider))) == {"more": ("endpoints",)}


def test_no_credential_is_among_the_values_that_are_named() -> None:
    provider = resource("pulumi:providers:aws", "more", secretKey="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    (given,) = reviewed(side("aws-dl1"), side("aws-dl1", provider)).unknown_changes[0].inputs
    assert (given.path, given.after) == ("secretKey", "a credential in plain text")


def test_a_key_with_a_dot_has_its_value() -> None:
    function = resource("aws:lambda/function:Function", "more", environment={"app.mode": "fast"})
    (given,) = reviewed(side("aws-dl1"), side("aws-dl1", function)).unknown_changes[0].inputs
    assert (given.path, given.after) == ("environment.app.mode", "fast")
