# SPDX-License-Identifier: Apache-2.0
"""Random policies of AWS: no widening is hidden, and what only reads differently shows nothing.

The oracle decides single calls. It knows nothing of sets of actions, resources and circumstances.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.aws.iam.decide import AwsPrincipal, InForce, Need, decide_aws_call
from components.aws.iam.documents import PolicyDocument, statements_of
from components.aws.review.platform import AwsReview
from components.platform.review import Snapshot
from tests.support.counts import FIRST, wanted
from tests.support.reviews import resource, sentences
from tests.support.widenings import AwsStatement as Statement
from tests.support.widenings import allow_aws, widened_aws

ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:Get*", "s3:*", "ecr:*", "ssm:StartSession", "ssm:Start?ession", "*")
RESOURCES = (
    "arn:aws:s3:::vision-dev/*", "arn:aws:s3:::vision-*/*", "arn:aws:s3:::vision-dev/${aws:username}/*", "*",
    "arn:aws:ec2:us-east-1:*:instance/*",
)  # fmt: skip
CONDITIONS: tuple[Statement, ...] = (
    {}, {}, {},
    {"StringEquals": {"aws:ResourceTag/stack": "vision-dev"}},
    {"StringLike": {"aws:ResourceTag/stack": ["vision-*"]}},
    {"StringNotEquals": {"aws:ResourceTag/stack": "vision-dev"}},
    {"Bool": {"aws:SecureTransport": "true"}},
    {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}},
)  # fmt: skip
CALLED = (
    "s3:GetObject",
    "s3:GetBucketAcl",
    "s3:PutObject",
    "s3:DeleteObject",
    "ecr:PutImage",
    "ssm:StartSession",
    "x:Y",
)
NAMED = (
    "arn:aws:s3:::vision-dev/a", "arn:aws:s3:::vision-dev/ann/a", "arn:aws:s3:::vision-prod/a", "arn:aws:s3:::other/a",
    "arn:aws:ec2:us-east-1:1:instance/i-1", "*",
)  # fmt: skip


statements = st.builds(allow_aws, st.sampled_from(ACTIONS), st.sampled_from(RESOURCES), st.sampled_from(CONDITIONS))
denials = statements.map(lambda one: {**one, "Effect": "Deny"})


def side(rows: Sequence[Statement], cut: int | None = None, called: str = "nodes") -> Snapshot:
    """The statements in one policy, or in two."""
    parts = [rows] if cut is None else [rows[:cut], rows[cut:]]
    made = [resource("aws:iam/role:Role", "role", name="nodes")]
    for number, part in enumerate(parts):
        name = f"{called}-{number}"
        text = json.dumps({"Statement": part}, indent=number or None, sort_keys=bool(number))
        arn = f"arn:aws:iam::1:policy/{name}"
        made.append(resource("aws:iam/policy:Policy", name, name=name, policy=text))
        made.append(resource("aws:iam/rolePolicyAttachment:RolePolicyAttachment", name, role="nodes", policyArn=arn))
    return Snapshot("vision-dev", "aws-dl1", {}, tuple(made))


def needs(chance: random.Random, number: int) -> list[Need]:
    made = []
    for _ in range(number):
        keys = {"aws:username": ("ann",), "aws:SourceIp": (chance.choice(("10.1.2.3", "203.0.113.5")),)}
        if chance.random() < 0.7:
            keys["aws:ResourceTag/stack"] = (chance.choice(("vision-dev", "vision-prod", "other")),)
        keys["aws:SecureTransport"] = (chance.choice(("true", "false")),)
        made.append(Need(chance.choice(CALLED), chance.choice(NAMED), keys))
    return made


def allowed(rows: Sequence[Statement], need: Need) -> bool:
    document = PolicyDocument("", statements_of(json.dumps({"Statement": rows})))
    return decide_aws_call(need, AwsPrincipal("arn:aws:iam::1:role/nodes", role="nodes"), InForce([document])).allowed


def drawn(chance: random.Random, conditions: Sequence[Statement] = CONDITIONS) -> Statement:
    return allow_aws(chance.choice(ACTIONS), chance.choice(RESOURCES), chance.choice(conditions))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + wanted(sample=30, full=300)))
def test_no_widening_is_hidden(seed: int) -> None:
    chance = random.Random(seed)
    before = [drawn(chance) for _ in range(3)]
    if chance.random() < 0.4:
        before.append({**drawn(chance), "Effect": "Deny"})
    after = widened_aws(before, chance, drawn(chance, ({},)))
    if chance.random() < 0.2:
        after = [one for one in before if one["Effect"] == "Allow"]
    then, now = AwsReview().abilities((side(before), side(after)))
    for need in needs(chance, 120):
        was, is_now = allowed(before, need), allowed(after, need)
        if is_now and not was:
            assert now - then, (need, before, after)
        if was and not is_now:
            assert then - now, (need, before, after)


@given(st.lists(st.one_of(statements, statements, denials), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_what_only_reads_differently_shows_nothing(rows: list[Statement], chance: random.Random) -> None:
    after = [part for one in rows for part in _rewritten(one, chance)]
    after += chance.sample(after, len(after) // 2)
    chance.shuffle(after)
    assert sentences(side(rows), side(after, chance.randint(0, len(after)), "renamed")) == []


def _rewritten(one: Statement, chance: random.Random) -> list[Statement]:
    how = chance.randrange(4)
    if how == 0:
        return [{**one, "Action": [one["Action"].lower(), one["Action"]], "Sid": "Other"}]
    if how == 1:
        return [{**one, "Resource": [one["Resource"], one["Resource"].replace("vision-*", "vision-dev")]}]
    if how == 2 and "s3:" in one["Action"]:
        return [one, {**one, "Action": "s3:getobject"}] if one["Action"] != "s3:PutObject" else [one]
    return [{key: one[key] for key in sorted(one)}]
