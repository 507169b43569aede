# SPDX-License-Identifier: Apache-2.0
"""Grants as policy documents of IAM: narrowed, in one order, within AWS's limits, with the right modes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import pytest
from moto.iam.aws_managed_policies import aws_managed_policies_data

from catalog.tables import table
from components.aws.iam.decide import AwsPrincipal, InForce, Need, decide_aws_call
from components.aws.iam.documents import PolicyDocument, statements_of
from components.aws.plan import AwsDl1Plan
from components.aws.stack import AwsAccess, AwsUsers
from components.aws.statements import (
    CHARACTERS_PER_POLICY,
    POLICIES_PER_PRINCIPAL,
    AwsPolicy,
    AwsStatement,
    aws_policies,
    policy_document,
    policy_size,
    policy_size_problem,
    rows_of_grant,
    split_policies,
)
from localcloud.aws import identities
from schemas.model import Bucket, Input, Was
from tests.support.aws_plans import ACCOUNT, aws_job, aws_plan

ROLE = AwsUsers(role="scientist")
BUCKET = "arn:aws:s3:::vision-dev-training"


def of(plan: AwsDl1Plan, who: str) -> list[AwsPolicy]:
    return [policy for policy in aws_policies(plan) if policy.who == who]


def allowed(plan: AwsDl1Plan, who: str, action: str, resource: str) -> bool:
    """Whether a statement names this action and resource. Conditions are ignored."""
    return any(
        action in one.actions and any(fnmatchcase(resource, pattern) for pattern in one.resources)
        for policy in of(plan, who)
        for one in policy.statements
    )


def test_nodes_write_their_jobs_folders_and_nothing_that_other_nodes_run() -> None:
    plan = aws_plan()
    for key, may in {
        "resnet/base/1/s00000001/status/0.json": True,
        ".trainyard/clusters/resnet/nodes/main-0.json": True,
        ".trainyard/clusters/resnet/starts/00000001/main-0.json": True,
        ".trainyard/clusters/resnet/queue/00000001.json": False,
        ".trainyard/clusters/other/nodes/main-0.json": False,
        ".trainyard/launcher/1234.tar.gz": False,
        ".trainyard/code/resnet-1234.tar.gz": False,
        "other/base/1/s00000001/status/0.json": False,
        "data/train.csv": False,
    }.items():
        assert allowed(plan, "runs", "s3:PutObject", f"{BUCKET}/{key}") is may, key
        assert allowed(plan, "runs", "s3:GetObject", f"{BUCKET}/{key}"), key
        assert allowed(plan, "users", "s3:PutObject", f"{BUCKET}/{key}"), key


def test_a_renamed_job_keeps_the_folders_of_its_oldest_name() -> None:
    plan = aws_plan(jobs={"bert": aws_job(was=Was(("resnet",)))})
    assert allowed(plan, "runs", "s3:PutObject", f"{BUCKET}/resnet/base/1/a")
    assert not allowed(plan, "runs", "s3:PutObject", f"{BUCKET}/bert/base/1/a")


def test_input_data_of_another_bucket_is_read_only() -> None:
    plan = aws_plan(jobs={"resnet": aws_job(inputs=(Input("/data", "company-data"),))})
    assert allowed(plan, "runs", "s3:GetObject", "arn:aws:s3:::company-data/a")
    assert allowed(plan, "runs", "s3:ListBucket", "arn:aws:s3:::company-data")
    assert not allowed(plan, "runs", "s3:PutObject", "arn:aws:s3:::company-data/a")
    assert not allowed(plan, "users", "s3:GetObject", "arn:aws:s3:::company-data/a")


def test_only_the_nodes_open_secrets() -> None:
    secret = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:vision-dev-resnet/ssh-a1b2c3"
    plan = aws_plan()
    assert allowed(plan, "runs", "secretsmanager:GetSecretValue", secret)
    assert not allowed(plan, "users", "secretsmanager:GetSecretValue", secret)
    for other in ("vision-dev-bert", "vision-dev-resnet-50", "vision-prod-resnet"):
        named = secret.replace("vision-dev-resnet", other)
        assert not allowed(plan, "runs", "secretsmanager:GetSecretValue", named)


def test_instances_are_those_of_the_stack() -> None:
    for policy in aws_policies(aws_plan()):
        for one in policy.statements:
            on_instances = any(":instance/" in arn for arn in one.resources)
            if on_instances and one.actions != ("ssm:UpdateInstanceInformation",):
                assert one.condition == {"StringEquals": {"aws:ResourceTag/stack": "vision-dev"}}


@pytest.mark.parametrize("users", [AwsUsers(group="scientists"), ROLE])
def test_people_end_the_sessions_that_they_opened_and_no_others(users: AwsUsers) -> None:
    """A role session has no name that a policy could use: AWS's tag on the session says who opened it."""
    documents = tuple(
        PolicyDocument(policy.name, statements_of(json.dumps(policy.document)))
        for policy in of(aws_plan(access=AwsAccess(users=users)), "users")
    )
    ann = "AIDA1" if users.group else "AROA1:ann"
    keys = {"aws:userid": (ann,), **({"aws:username": ("ann",)} if users.group else {})}
    principal = AwsPrincipal(f"arn:aws:iam::{ACCOUNT}:user/ann", user="ann", id=ann)
    for opener, name, may in (
        (ann, "ann", True), ("AIDA2", "bob", False), ("AROA1:bob", "bob", False), ("AROA2:ann", "bob", False),
    ):  # fmt: skip
        session = f"arn:aws:ssm:us-east-1:{ACCOUNT}:session/{name}-0a1b2c3d5eEXAMPLE"
        tagged = {**keys, "ssm:resourceTag/aws:ssmmessages:session-id": (opener,)}
        for action in ("ssm:ResumeSession", "ssm:TerminateSession"):
            need = Need(action, session, tagged)
            assert decide_aws_call(need, principal, InForce(documents, ())).allowed is may, (opener, action)


def test_the_key_of_the_bucket_is_used_where_there_is_one() -> None:
    key = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/1234abcd"
    plan = aws_plan(bucket=Bucket(key=key))
    for who in ("users", "runs"):
        assert allowed(plan, who, "kms:GenerateDataKey", key)
        assert not allowed(aws_plan(), who, "kms:GenerateDataKey", key)


def statements_named(document: Any) -> Iterator[tuple[str, str]]:
    for one in document["Statement"]:
        resources = one["Resource"] if isinstance(one["Resource"], list) else [one["Resource"]]
        yield from ((resource, json.dumps(one.get("Condition"))) for resource in resources)


@pytest.mark.parametrize("users", [AwsUsers(group="scientists"), ROLE])
def test_a_resource_stands_in_one_statement_and_the_order_is_the_plans(users: AwsUsers) -> None:
    plan = aws_plan(access=AwsAccess(users=users))
    assert aws_policies(plan) == aws_policies(aws_plan(access=AwsAccess(users=users)))
    for policy in aws_policies(plan):
        named = list(statements_named(policy.document))
        assert len(named) == len(set(named))


def test_documented_attaches_awss_own_policies_and_adds_what_they_lack() -> None:
    plan = aws_plan(access=AwsAccess(mode="documented", users=ROLE))
    for who in ("users", "runs"):
        [policy] = of(plan, who)
        assert policy.managed
        assert policy.statements
    assert allowed(
        plan,
        "runs",
        "secretsmanager:GetSecretValue",
        f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:vision-dev-resnet/runs/base-a1b2c3",
    )
    assert not allowed(
        plan, "runs", "ecr:BatchGetImage", f"arn:aws:ecr:us-east-1:{ACCOUNT}:repository/vision/dev/training"
    )


def test_a_proof_of_concept_gives_nodes_everything_and_leaves_people_to_administrators() -> None:
    plan = aws_plan(access=AwsAccess(mode="proof-of-concept"))
    assert of(plan, "users") == []
    [policy] = of(plan, "runs")
    assert policy.document is None
    assert policy.managed == ("arn:aws:iam::aws:policy/AdministratorAccess",)


@cache
def kept_by_aws() -> Any:
    return json.loads(aws_managed_policies_data)


def test_awss_own_policies_exist_also_in_the_local_cloud() -> None:
    for mode in table("aws_dl1_access")["managed"].values():
        assert {*mode["users"], *mode["runs"]} <= kept_by_aws().keys() & {*identities.MANAGED}


def managed_actions(names: list[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        for one in kept_by_aws()[name]["Document"]["Statement"]:
            actions = one.get("Action", [])
            found += [actions] if isinstance(actions, str) else actions
    return found


def test_documented_is_enough_for_every_grant() -> None:
    plan = aws_plan(access=AwsAccess(mode="documented", users=ROLE))
    managed = table("aws_dl1_access")["managed"]["documented"]
    for grant in plan.access.grants:
        words = f"{grant.does} {grant.what}"
        covered = managed_actions(managed[grant.who])
        for row in rows_of_grant(grant.who, words):
            for action in row["actions"]:
                by_managed = any(fnmatchcase(action, pattern) for pattern in covered)
                assert by_managed or words in managed["beside"], (grant.who, words, action)


def long_statement(number: int) -> AwsStatement:
    return AwsStatement(("s3:GetObject",), (f"arn:aws:s3:::{number:0900}/*",), {}, "", ("",))


def test_a_document_that_aws_would_find_too_long_goes_on_in_another_policy() -> None:
    made = split_policies("vision-dev-nodes", "runs", [long_statement(number) for number in range(20)])
    assert [policy.name for policy in made] == [
        "vision-dev-nodes",
        "vision-dev-nodes-2",
        "vision-dev-nodes-3",
        "vision-dev-nodes-4",
    ]
    assert all(policy_size(policy_document(policy.statements)) <= CHARACTERS_PER_POLICY for policy in made)
    assert [one for policy in made for one in policy.statements] == [long_statement(number) for number in range(20)]
    assert policy_size_problem(made) is None


def test_what_aws_does_not_take_is_said() -> None:
    too_long = replace(long_statement(1), resources=tuple(f"arn:aws:s3:::{number:0900}/*" for number in range(7)))
    assert "one statement of a has" in str(policy_size_problem(split_policies("a", "runs", [too_long])))
    many = split_policies("a", "runs", [long_statement(number) for number in range(6 * POLICIES_PER_PRINCIPAL + 1)])
    assert "11 policies would be attached" in str(policy_size_problem(many))
