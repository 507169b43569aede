# SPDX-License-Identifier: Apache-2.0
"""Which statements of others count as drift of a stack on OCI, and which are the tenancy's own rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from components.oci.client.live_policies import POLICY, PolicyReader
from components.oci.client.live_values import as_declared_if_equal
from components.platform.client import Where
from components.platform.live import LiveQuestion, LiveSide, Reading
from components.platform.review import ReviewedResource, Snapshot

TENANCY, ABOVE, HERE = "ocid1.tenancy.oc1..t", "ocid1.compartment.oc1..above", "ocid1.compartment.oc1..here"
MADE = datetime(2026, 5, 1, tzinfo=UTC)
BEFORE, AFTER = datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)


def resource(kind: str, key: str, **inputs: Any) -> ReviewedResource:
    return ReviewedResource(kind, key, f"urn::{key}", "", {"compartmentId": HERE, **inputs}, id=f"ocid1.{key}")


DECLARED = Snapshot(
    "demo",
    "oci",
    {},
    (
        resource("oci:ObjectStorage/bucket:Bucket", "bucket", name="demo-bucket"),
        resource("oci:Core/vcn:Vcn", "vcn"),
        resource("oci:Identity/dynamicGroup:DynamicGroup", "runs", name="demo-runs"),
        resource(POLICY, "access", name="demo-access", statements=["Allow group vision to read buckets in tenancy"]),
    ),
)


@dataclass
class TenancySession:
    """A compartment below another one; the caller is in the group `deployers`."""

    tenancy: str = TENANCY
    signer: Any = None
    credentials: dict[str, str] = field(default_factory=lambda: {"user": "ocid1.user.me"})

    def client(self, name: str) -> Any:
        parents = {HERE: (ABOVE, "here"), ABOVE: (TENANCY, "above")}
        return SimpleNamespace(
            get_compartment=lambda ocid: SimpleNamespace(
                data=SimpleNamespace(compartment_id=parents[ocid][0], name=parents[ocid][1])
            ),
            get_group=lambda ocid: SimpleNamespace(data=SimpleNamespace(name="deployers")),
        )


def seen(
    statement: str,
    place: str = HERE,
    made: datetime = BEFORE,
    known: tuple[str, ...] = (),
    stack: str = "",
    state: Snapshot | None = None,
) -> LiveSide:
    """The live side of a tenancy with one policy of others. `state`: what the stack in its tags declares."""
    tags = {"managed-by": "trainyard", "stack": stack} if stack else {}
    policy = SimpleNamespace(
        id="ocid1.policy.other", name="other", statements=[statement], time_created=made, freeform_tags=tags
    )

    def lists(client: str, listing: str, within: str, **more: str) -> list[Any]:
        if listing == "list_user_group_memberships":
            return [SimpleNamespace(group_id="ocid1.group.deployers")]
        return [policy] if within == place else []

    question = LiveQuestion(DECLARED, Where({}), known, {"other": state}.get)
    reading = Reading(DECLARED, lambda error: False)
    PolicyReader(question, TenancySession(), reading, lists, MADE).read()  # type: ignore[arg-type]
    return reading.side({})


def found(*arguments: Any, **named: Any) -> list[str]:
    """The statements of the policy that count as drift."""
    side = seen(*arguments, **named)
    return [text for one in side.snapshot.of(POLICY) if one.urn in side.undeclared for text in one.inputs["statements"]]


IN = f"in compartment id {HERE}"


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        (f"Allow group others to read objects {IN} where target.bucket.name = 'demo-bucket'", HERE),
        (f"Allow group others to read objects {IN} where target.bucket.name = /demo-*/", HERE),
        (
            f"Allow group others to manage buckets {IN} where all {{target.bucket.name = 'demo-bucket', "
            "request.permission = 'BUCKET_READ'}",
            HERE,
        ),
        ("Allow any-user to read objects in tenancy", TENANCY),
        (f"Allow any-group to use subnets {IN}", ABOVE),
        (f"Allow dynamic-group demo-runs to manage buckets {IN}", HERE),
        ("Allow dynamic-group Demo-Runs to manage all-resources in tenancy", TENANCY),
        ("Allow dynamic-group demo-runs to manage users in tenancy", TENANCY),
        ("Allow dynamic-group id ocid1.runs to read secret-family in tenancy", TENANCY),
    ],
)
def test_what_names_the_stack_or_is_for_everybody_counts_however_old_it_is(statement: str, place: str) -> None:
    assert found(statement, place) == [statement]


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("Allow group Administrators to manage all-resources in tenancy", TENANCY),
        (f"Allow group vision to manage object-family {IN}", ABOVE),
        (f"Allow group others to use virtual-network-family {IN}", HERE),
        ("Allow group others to manage objects in compartment here", ABOVE),
    ],
)
def test_what_is_wide_counts_if_it_was_made_after_the_stack_and_is_not_known(statement: str, place: str) -> None:
    assert found(statement, place) == []
    assert found(statement, place, AFTER) == [statement.replace("compartment here", f"compartment id {HERE}")]
    who = statement.removeprefix("Allow ").partition(" to ")[0]
    assert found(statement, place, AFTER, (who,)) == []


@pytest.mark.parametrize(
    "statement",
    [
        f"Allow group others to read objects {IN} where target.bucket.name = 'another'",
        f"Allow group others to manage buckets {IN} where target.repo.name = 'demo-bucket'",
        "Allow group others to manage objects in compartment id ocid1.compartment.oc1..elsewhere",
        f"Allow group others to read metrics {IN}",
    ],
)
def test_what_does_not_reach_the_stack_never_counts(statement: str) -> None:
    assert found(statement, made=AFTER) == []


FOR_OTHERS = f"Allow group others to read objects {IN} where target.bucket.name = 'demo-bucket'"


def test_another_stacks_policy_is_declared_there_and_one_that_bears_this_stacks_name_is_not() -> None:
    declared = resource(POLICY, "policy.other", statements=[FOR_OTHERS.replace("Allow", "ALLOW")])
    assert found(FOR_OTHERS, made=AFTER, stack="other", state=Snapshot("other", "oci", {}, (declared,))) == []
    assert found(FOR_OTHERS, made=AFTER, stack="other", known=("stack other",)) == []
    assert found(FOR_OTHERS, made=AFTER, stack="demo") == [FOR_OTHERS]


@pytest.mark.parametrize(
    ("resources", "reason"),
    [
        (None, "which is not known here"),
        ((), "whose last `up` did not make it so"),
        ((resource(POLICY, "policy.other", statements=["Allow group others to inspect buckets in tenancy"]),),
         "whose last `up` did not make it so"),
        ((resource(POLICY, "policy.third", statements=[FOR_OTHERS]),), "whose last `up` did not make it so"),
    ],
)  # fmt: skip
def test_tags_only_claim_that_another_stack_made_a_policy(
    resources: tuple[ReviewedResource, ...] | None, reason: str
) -> None:
    state = None if resources is None else Snapshot("other", "oci", {}, resources)
    side = seen(FOR_OTHERS, stack="other", state=state)
    assert list(side.undeclared.values()) == [
        f"policy other in compartment here: it says that it is of the stack other, {reason}"
    ]


def test_any_right_that_users_of_the_stack_got_since_counts() -> None:
    statement = "Allow group vision to manage users in tenancy"
    assert found(statement, TENANCY) == []
    assert found(statement, TENANCY, AFTER) == [statement]
    assert found(statement.replace("vision", "others"), TENANCY, AFTER) == []


def test_a_compartment_by_its_name_is_that_of_the_stack() -> None:
    statement = "Allow any-user to read objects in compartment above:here"
    assert found(statement, TENANCY) == [f"Allow any-user to read objects {IN}"]


def test_what_lets_the_caller_make_the_stack_is_no_news_but_what_it_got_since_is() -> None:
    statement = f"Allow group deployers to manage buckets {IN} where target.bucket.name = 'demo-bucket'"
    assert found(statement) == []
    assert found(statement, made=AFTER) == [statement]


def test_a_statement_that_cannot_be_read_counts_where_it_names_the_stack() -> None:
    text = f"Admit group a of tenancy b to read objects {IN} where target.bucket.name = 'demo-bucket'"
    assert found(text) == [text]
    assert found("Admit group a of tenancy b to read objects in compartment id ocid1.compartment.x") == []


RULE = {"protocol": "6", "source": "10.0.0.0/16", "description": "why", "tcpOptions": {"min": 22, "max": 22}}
LIVE = {"protocol": "6", "source": "10.0.0.0/16", "isStateless": False,
        "tcpOptions": {"destinationPortRange": {"min": 22, "max": 22}}}  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "live", "same"),
    [
        ([RULE], [LIVE], True),
        ([RULE, {**RULE, "source": "x"}], [{**LIVE, "source": "x"}, LIVE], True),
        ([RULE], [{**LIVE, "isStateless": True}], False),
        ([{**RULE, "tcpOptions": None}], [LIVE], False),
        ([RULE], [LIVE, LIVE], False),
        ([RULE], [], False),
        ({"runtime": "60", "shape": "A"}, {"runtime": 60, "shape": "A", "probe": "x"}, True),
        ({"shape": "A"}, {"shape": "A", "commandLineArguments": "--evil"}, False),
        ({"shape": "A"}, {"shape": "B"}, False),
        (["a", "b"], ["b", "a"], True),
        (None, [], True),
        (True, False, False),
    ],
)
def test_what_the_cloud_writes_in_another_way_is_as_declared(declared: Any, live: Any, same: bool) -> None:
    assert (as_declared_if_equal(declared, live) == declared) is same
