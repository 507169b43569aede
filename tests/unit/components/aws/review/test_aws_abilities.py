# SPDX-License-Identifier: Apache-2.0
"""Policies of identities and of resources on AWS, before and after: the sentences that a person would write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from catalog.platforms import require_capability
from components.aws.review.platform import REVIEW
from components.platform.review import ReviewedResource, ReviewPlatform, Snapshot
from tests.support.reviews import resource, sentences

ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
OBJECTS, BUCKET = "arn:aws:s3:::vision-dev/*", "arn:aws:s3:::vision-dev"
TRUST = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
TLS = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "s3:*",
    "Resource": [BUCKET, OBJECTS],
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}


def document(*statements: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(action: Any, on: Any = OBJECTS, **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": on, **more}


def side(
    *statements: Any, trust: Any = TRUST, bucket: Any = (TLS,), extra: tuple[ReviewedResource, ...] = ()
) -> Snapshot:
    arn = "arn:aws:iam::(unknown) account:policy/vision-dev-nodes"
    made = (
        resource("aws:iam/role:Role", "nodes", name="vision-dev-nodes", assumeRolePolicy=document(trust)),
        resource("aws:iam/policy:Policy", "nodes", name="vision-dev-nodes", policy=document(*statements)),
        resource("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "a", role="vision-dev-nodes", policyArn=arn),
        resource("aws:s3/bucket:Bucket", "bucket", bucket="vision-dev"),
        resource("aws:s3/bucketPolicy:BucketPolicy", "bucket", bucket="vision-dev", policy=document(*bucket)),
        resource(
            "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "bucket", bucket="vision-dev",
            blockPublicAcls=True, blockPublicPolicy=True, ignorePublicAcls=True, restrictPublicBuckets=True,
        ),
    )  # fmt: skip
    return Snapshot("vision-dev", "aws-dl1", {}, (*made, *extra))


READS = allow("s3:GetObject")
NODES = "role vision-dev-nodes"
CHANGES = {
    "an action more": (
        side(READS),
        side(allow(["s3:PutObject", "s3:GetObject"])),
        [f"{NODES} may write objects (s3): objects in bucket vision-dev"],
    ),
    "everywhere": (side(READS), side(allow("s3:GetObject", "*")), [f"{NODES} may read objects (s3), on everything"]),
    "a wildcard is more than what is known": (
        side(READS),
        side(READS, allow("ecr:Get*", "arn:aws:ecr:us-east-1:1:repository/vision")),
        [
            f"{NODES} may read authorization tokens, download url for layers and whatever there is (ecr):"
            " repository vision"
        ],
    ),
    "everything": (side(READS), side(READS, allow("*", "*")), [f"{NODES} may do everything"]),
    "without its condition": (
        side(READS, allow("ssm:StartSession", "*", Condition={"StringEquals": {"aws:ResourceTag/stack": "dev"}})),
        side(READS, allow("ssm:StartSession", "*")),
        [
            f"{NODES} may start sessions (ssm): everything where aws:ResourceTag/stack is something else or not given"
        ],
    ),
    "a policy of AWS's own": (
        side(READS),
        side(READS, extra=(
            resource("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "b", role="vision-dev-nodes",
                     policyArn="arn:aws:iam::aws:policy/AdministratorAccess"),)),
        [f"{NODES} may do whatever the policy AdministratorAccess allows"],
    ),
    "who may take on the role": (
        side(READS),
        side(READS, trust={**TRUST, "Principal": {"Service": "ec2.amazonaws.com", "AWS": "123456789012"}}),
        ["the account 123456789012 may take on roles (sts): role vision-dev-nodes"],
    ),
    "anybody may take on the role": (
        side(READS),
        side(READS, trust={**TRUST, "Principal": "*"}),
        ["everybody may take on roles (sts): role vision-dev-nodes"],
    ),
    "an identity provider": (
        side(READS),
        side(READS, trust={
            **TRUST, "Action": "sts:AssumeRoleWithWebIdentity",
            "Principal": {"Federated": "token.actions.githubusercontent.com"},
        }),
        [
            "the identity provider token.actions.githubusercontent.com may take on role with web identities (sts):"
            " role vision-dev-nodes",
            "the service ec2.amazonaws.com may no longer take on roles (sts): role vision-dev-nodes",
        ],
    ),
    "a bucket for everybody": (
        side(READS),
        side(READS, bucket=[TLS, {**READS, "Principal": "*"}]),
        [
            "everybody may read objects (s3): objects in bucket vision-dev",
        ],
    ),
    "without TLS": (
        side(READS),
        side(READS, bucket=[{**TLS, "Action": "s3:PutObject"}]),
        [
            f"{NODES} may read objects (s3): objects in bucket vision-dev where aws:SecureTransport is false",
        ],
    ),
    "a document that cannot be read": (
        side(READS),
        side(READS, extra=(
            resource("aws:iam/rolePolicy:RolePolicy", "c", role="vision-dev-nodes", name="c", policy="{nonsense"),)),
        [
            "the principals of an unreadable statement may do what cannot be read here:"
            " the policy c of the role vision-dev-nodes: {nonsense"
        ],
    ),
    "all but": (
        side(READS),
        side(READS, {"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}),
        [f"{NODES} may do everything"],
    ),
    "less": (
        side(READS, allow("s3:DeleteObject")),
        side(READS),
        [f"{NODES} may no longer delete objects (s3): objects in bucket vision-dev"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_what_changes_in_words(case: str) -> None:
    before, after, expected = CHANGES[case]
    assert sentences(before, after) == expected


def test_without_the_block_a_policy_may_open_the_bucket() -> None:
    before = side(READS)
    after = Snapshot("vision-dev", "aws-dl1", {}, before.resources[:-1])
    assert sentences(before, after) == [
        "a policy or an ACL may open by an ACL; open by a policy; stay open by an ACL; stay open by a policy:"
        " bucket vision-dev"
    ]


@pytest.mark.parametrize(
    "later", [{}, {"policy": document({**READS, "Principal": "*", "Action": "*", "Resource": "*"})}]
)
def test_an_endpoint_that_loses_its_policy_carries_calls_of_its_service_alone(later: dict[str, str]) -> None:
    """Not everything there is: the sentence would name the rights of an administrator, for everybody."""
    own = document({**READS, "Principal": "*"})
    before, after = (
        side(READS, extra=(resource(ENDPOINT, "s3", serviceName="com.amazonaws.us-east-1.s3", **policy),))
        for policy in ({"policy": own}, later)
    )
    assert sentences(before, after) == ["everybody through the endpoint of s3 may do everything with s3"]


def test_a_pattern_with_a_question_mark_shows_as_it_is_written() -> None:
    before, after = side(READS), side(READS, allow("logs:Describe?ogGroups", "*"))
    gained = require_capability("aws-dl1", ReviewPlatform).abilities((before, after))
    assert {one.operation for one in gained[1] - gained[0]} == {"logs:Describe?ogGroups"}


def test_a_boundary_that_goes_is_a_gain() -> None:
    role = ("aws:iam/role:Role", "nodes")
    bounded = Snapshot("s", "aws-dl1", {}, (resource(*role, name="n", permissionsBoundary="arn:aws:iam::1:policy/b"),))
    free = Snapshot("s", "aws-dl1", {}, (resource(*role, name="n"),))
    assert sentences(bounded, free) == ["role n may act beyond the permissions boundary b"]
    other = Snapshot("s", "aws-dl1", {}, (resource(*role, name="n", permissionsBoundary="arn:aws:iam::1:policy/c"),))
    assert sentences(bounded, other)[0] == "role n may act beyond the permissions boundary b"
    assert sentences(free, bounded) == ["role n may no longer act beyond the permissions boundary b"]


def test_words_stay_short_whatever_is_granted() -> None:
    services = ("s3", "ec2", "iam")
    many = frozenset(f"{one}:{verb}{noun}" for one in services for verb in ("Get", "Put") for noun in "ABCDEFGHIJ")
    assert len(REVIEW.operation_words(many)) < 300
    assert len(REVIEW.resource_words(frozenset(f"arn:aws:s3:::bucket-{number}" for number in range(90)))) < 200


def test_statements_of_identities_are_those_that_a_rehearsal_counts() -> None:
    whole, answers = side(READS, allow("s3:PutObject")), require_capability("aws-dl1", ReviewPlatform)
    texts = answers.statements(whole)
    assert texts == (json.dumps(READS, sort_keys=True), json.dumps(allow("s3:PutObject"), sort_keys=True))
    without = answers.without_statements(whole, frozenset(texts[1:]))
    assert answers.statements(without) == texts[:1]
    assert sentences(without, side(READS)) == []
