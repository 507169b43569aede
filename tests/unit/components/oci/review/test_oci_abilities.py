# SPDX-License-Identifier: Apache-2.0
"""Statements and matching rules of OCI, before and after: the sentences that a person would write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.oci.iam.permissions import verb_covers
from components.oci.review.platform import operation_words, resource_words
from components.platform.review import Snapshot
from tests.support.reviews import resource, sentences
from tests.support.samples import COMPARTMENT, TENANCY

HERE = f"compartment id {COMPARTMENT}"
RUNS = "Allow dynamic-group vision-dev-runs to"
WHO = "dynamic group vision-dev-runs"
RULE = f"all {{resource.type = 'datasciencejobrun', resource.compartment.id = '{COMPARTMENT}'}}"
ONLY = "where target.bucket.name = 'vision-dev'"


def side(*statements: str, rule: str = RULE, at: str = COMPARTMENT, **inputs: object) -> Snapshot:
    return Snapshot(
        "vision-dev",
        "oci",
        {"compartment": COMPARTMENT, "tenancy": TENANCY, "bucket": {"name": "vision-dev"}},
        (
            resource("oci:Identity/policy:Policy", "access", compartmentId=at, statements=list(statements)),
            resource("oci:Identity/dynamicGroup:DynamicGroup", "runs", name="vision-dev-runs", matchingRule=rule),
            resource("oci:ObjectStorage/bucket:Bucket", "bucket", name="vision-dev", **inputs),
        ),
    )


BEFORE = f"{RUNS} read objects in {HERE} {ONLY}"
CHANGES = {
    "a larger verb": (
        side(BEFORE),
        side(f"{RUNS} use objects in {HERE} {ONLY}"),
        [f"{WHO} may overwrite objects: bucket vision-dev in the stack's compartment"],
    ),
    "without its bucket": (
        side(BEFORE),
        side(f"{RUNS} read objects in {HERE}"),
        [f"{WHO} may list and read objects: any other bucket in the stack's compartment"],
    ),
    "all of the tenancy": (
        side(BEFORE),
        side(f"{RUNS} read objects in tenancy {ONLY}", at=TENANCY),
        [f"{WHO} may list and read objects: bucket vision-dev in the rest of the tenancy"],
    ),
    "for everybody": (
        side(BEFORE),
        side(f"Allow any-user to read objects in {HERE} {ONLY}"),
        ["everybody may list and read objects: bucket vision-dev in the stack's compartment"],
    ),
    "everything": (
        side(BEFORE),
        side(BEFORE, f"Allow group admins to manage all-resources in {HERE}"),
        [
            "group admins may manage buckets and objects: any bucket in the stack's compartment",
            "group admins may manage everything: the stack's compartment",
            "group admins may manage keys: any key in the stack's compartment",
            "group admins may manage repositories: any repository in the stack's compartment",
            "group admins may manage secret bundles, secret versions and secrets:"
            " any secret in the stack's compartment",
        ],
    ),
    "what the catalog has no permissions of": (
        side(BEFORE),
        side(BEFORE, f"{RUNS} use instance-family in {HERE}"),
        [f"{WHO} may use instance family: the stack's compartment"],
    ),
    "a wider matching rule": (
        side(BEFORE),
        side(BEFORE, rule="all {resource.type = 'datasciencejobrun'}"),
        ["job runs in any other compartment may join: dynamic group vision-dev-runs"],
    ),
    "another kind of members": (
        side(BEFORE),
        side(BEFORE, rule=f"any {{{RULE}, instance.id = 'ocid1.instance.oc1..a'}}"),
        [],  # filled in below: too long for a line
    ),
    "a statement that cannot be read": (
        side(BEFORE),
        side(BEFORE, "Endorse  group x to read objects in any-tenancy"),
        [
            "the principals of an unreadable statement may do what cannot be read here:"
            " Endorse group x to read objects in any-tenancy"
        ],
    ),
    "a statement that OCI refuses where it is": (
        side(BEFORE),
        side(BEFORE, f"{RUNS} read buckets in tenancy"),
        [
            "the principals of an unreadable statement may do what cannot be read here:"
            " Allow dynamic-group vision-dev-runs to read buckets in tenancy"
        ],
    ),
    "a bucket for the internet": (
        side(BEFORE),
        side(BEFORE, accessType="ObjectReadWithoutList"),
        ["the whole internet, without signing in, may read objects: bucket vision-dev"],
    ),
    "less": (
        side(BEFORE),
        side(),
        [f"{WHO} may no longer list and read objects: bucket vision-dev in the stack's compartment"],
    ),
}


@pytest.mark.parametrize("case", [name for name in CHANGES if CHANGES[name][2]])
def test_what_changes_in_words(case: str) -> None:
    before, after, expected = CHANGES[case]
    assert sentences(before, after) == expected


def test_a_member_more_is_a_gain_of_that_member() -> None:
    before, after, _ = CHANGES["another kind of members"]
    found = sentences(before, after)
    assert found
    assert all("may join: dynamic group vision-dev-runs" in one for one in found)
    assert all("instance.id is ocid1.instance.oc1..a" in one for one in found)


def test_a_condition_on_the_request_is_said() -> None:
    narrowed = f"{RUNS} read objects in {HERE} where all {{{ONLY[6:]}, request.region = 'iad'}}"
    assert sentences(side(narrowed), side(BEFORE)) == [
        f"{WHO} may list and read objects: bucket vision-dev in the stack's compartment"
        " where request.region is something else or not given"
    ]


def test_words_stay_short_whatever_is_granted() -> None:
    everything = frozenset(verb_covers("manage", "all-resources"))
    assert len(operation_words(everything)) < 300
    assert len(operation_words(everything - {"VCN_READ", "OBJECT_READ", "PAR_MANAGE"})) < 400
    assert operation_words(frozenset({"OBJECT_READ", "OBJECT_CREATE"})) == "read and create objects"
    assert (
        resource_words(frozenset({"any other bucket in a", "no certain bucket in a", "bucket x in a"}))
        == "any bucket in a"
    )


TEAMS = "ocid1.compartment.oc1..teams"
BY_NAME, BY_ID = (f"{RUNS} read objects in compartment {place} {ONLY}" for place in ("teams", f"id {TEAMS}"))


def with_compartment(statement: str) -> Snapshot:
    plain = side(statement, at=TENANCY)
    made = resource("oci:Identity/compartment:Compartment", "teams", name="Teams", compartmentId=TENANCY)
    return replace(plain, resources=(*plain.resources, replace(made, id=TEAMS)))


def test_a_compartment_by_its_name_and_by_its_ocid_is_one_where_the_program_makes_it() -> None:
    assert sentences(with_compartment(BY_NAME), with_compartment(BY_ID)) == []
    assert sentences(side(BY_NAME, at=TENANCY), with_compartment(BY_ID)) == []


def test_a_compartment_of_which_only_the_name_is_known_says_so() -> None:
    assert sentences(side(BY_NAME, at=TENANCY), side(BY_ID, at=TENANCY)) == [
        f"{WHO} may list and read objects: bucket vision-dev in compartment {TEAMS}",
        f"{WHO} may no longer list and read objects: bucket vision-dev in compartment teams"
        " (its OCID is not known here)",
    ]
