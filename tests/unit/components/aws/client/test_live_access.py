# SPDX-License-Identifier: Apache-2.0
"""Which policies count as drift of a stack on AWS, and which are the account's own rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from components.aws.client.live_access import POLICY, ROLE, AccessReader
from components.aws.iam.documents import declared_or_live, principals_in
from components.platform.client import Where
from components.platform.live import LiveQuestion, LiveSide, Reading
from components.platform.review import ReviewedResource, Snapshot
from schemas.model import NOTHING

ACCOUNT, BUCKET = "123456789012", "demo-bucket"
MADE, BEFORE, AFTER = (datetime(2026, month, 1, tzinfo=UTC) for month in (5, 4, 6))
OWN = f"arn:aws:iam::{ACCOUNT}:policy/demo-nodes"
TRUST = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}
DOCUMENT = {"Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{BUCKET}/*"}]}


def resource(kind: str, identity: str, **inputs: Any) -> ReviewedResource:
    return ReviewedResource(kind, identity, f"urn::{kind}::{identity}", "", inputs, id=identity)


DECLARED = Snapshot("demo", "aws-dl1", {}, (
    resource("aws:s3/bucket:Bucket", BUCKET, bucket=BUCKET),
    resource(ROLE, "demo-nodes", name="demo-nodes", assumeRolePolicy=json.dumps(TRUST)),
    resource(POLICY, OWN, name="demo-nodes", policy=json.dumps(DOCUMENT)),
    resource("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "a", role="demo-nodes", policyArn=OWN),
))  # fmt: skip


@dataclass
class AccountSession:
    """The response of the call that describes a whole account."""

    told: Mapping[str, Any]
    account: str = ACCOUNT
    region_name: str = "us-west-2"

    def client(self, service: str) -> Any:
        pages = SimpleNamespace(paginate=lambda **_: [self.told])
        return SimpleNamespace(
            get_paginator=lambda _: pages,
            get_account_authorization_details=None,
            get_caller_identity=lambda: {"Arn": f"arn:aws:iam::{ACCOUNT}:user/deployer"},
            list_policy_tags=lambda PolicyArn: {"Tags": []},  # noqa: N803 (botocore's own name)
        )


def own_role(**more: Any) -> dict[str, Any]:
    attached = [{"PolicyArn": OWN, "PolicyName": "demo-nodes"}]
    return {"RoleName": "demo-nodes", "CreateDate": MADE, "AssumeRolePolicyDocument": TRUST,
            "AttachedManagedPolicies": attached, **more}  # fmt: skip


def own_policy(document: Any = DOCUMENT) -> dict[str, Any]:
    version = {"IsDefaultVersion": True, "Document": document}
    return {"Arn": OWN, "PolicyName": "demo-nodes", "CreateDate": MADE, "PolicyVersionList": [version]}


def seen(
    *,
    role: dict[str, Any] | None = None,
    policy: dict[str, Any] | None = None,
    known: tuple[str, ...] = (),
    others: tuple[dict[str, Any], ...] = (),
    groups: tuple[dict[str, Any], ...] = (),
    declared: Snapshot = DECLARED,
    state: Snapshot | None = None,
    **users: Any,
) -> LiveSide:
    told = {
        "RoleDetailList": [role or own_role(), *others], "Policies": [policy or own_policy()],
        "GroupDetailList": [*groups],
        "UserDetailList": [{"UserName": name, **row} for name, row in users.items()],
    }  # fmt: skip
    reading = Reading(declared, lambda error: False)
    question = LiveQuestion(declared, Where({}), known, {"other": state}.get)
    AccessReader(question, AccountSession(told), reading).read()  # type: ignore[arg-type]
    return reading.side({})


def user(made: datetime, actions: Any, resources: Any) -> dict[str, Any]:
    document = {"Statement": {"Effect": "Allow", "Action": actions, "Resource": resources}}
    return {"CreateDate": made, "UserPolicyList": [{"PolicyName": "own", "PolicyDocument": document}]}


def test_an_account_as_the_stack_left_it_is_as_declared() -> None:
    side = seen()
    assert (side.undeclared, side.unread, side.snapshot) == ({}, (), DECLARED)


@pytest.mark.parametrize(
    ("actions", "resources"),
    [
        ("s3:GetObject", f"arn:aws:s3:::{BUCKET}/*"),
        (["ec2:RunInstances", "s3:*"], ["arn:aws:s3:::else", f"arn:aws:s3:::{BUCKET}"]),
        ("*", "arn:aws:s3:::demo-*"),
        ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/demo-*"),
        ("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/demo-nodes"),
    ],
)
def test_what_names_the_stack_counts_however_old_it_is(actions: Any, resources: Any) -> None:
    assert list(seen(mallory=user(BEFORE, actions, resources)).undeclared.values()) == [
        "policy own of the user mallory: no stack declares it"
    ]
    assert not seen(deployer=user(BEFORE, actions, resources)).undeclared, "what lets the caller make the stack"
    assert seen(deployer=user(AFTER, actions, resources)).undeclared
    held = user(BEFORE, actions, resources)
    group = {"GroupName": "people", "CreateDate": BEFORE, "GroupPolicyList": held["UserPolicyList"]}
    assert seen(groups=(group,), deployer={"CreateDate": BEFORE}).undeclared
    assert not seen(groups=(group,), deployer={"CreateDate": BEFORE, "GroupList": ["people"]}).undeclared


@pytest.mark.parametrize(("actions", "resources"), [("*", "*"), ("s3:*", "arn:aws:s3:::*"), (["s3:Get*"], ["*"])])
def test_what_is_wide_counts_if_it_was_made_after_the_stack_and_is_not_known(actions: Any, resources: Any) -> None:
    assert not seen(admin=user(BEFORE, actions, resources)).undeclared
    assert seen(admin=user(AFTER, actions, resources)).undeclared
    assert not seen(admin=user(AFTER, actions, resources), known=("user admin",)).undeclared


@pytest.mark.parametrize(
    ("actions", "resources"),
    [("s3:*", "arn:aws:s3:::another"), ("dynamodb:*", "*"), ("ec2:*", f"arn:aws:s3:::{BUCKET}")],
)
def test_what_does_not_reach_the_stack_never_counts(actions: Any, resources: Any) -> None:
    assert not seen(bob=user(AFTER, actions, resources)).undeclared


def test_a_denial_grants_nothing() -> None:
    document = {"Statement": [{"Effect": "Deny", "Action": "*", "Resource": f"arn:aws:s3:::{BUCKET}"}]}
    row = {"CreateDate": AFTER, "UserPolicyList": [{"PolicyName": "own", "PolicyDocument": document}]}
    assert not seen(bob=row).undeclared


def test_all_that_the_nodes_role_has_beside_its_policies_counts() -> None:
    own = {"PolicyName": "by-hand", "PolicyDocument": {"Statement": []}}
    attached = [{"PolicyArn": "arn:aws:iam::aws:policy/AdministratorAccess", "PolicyName": "AdministratorAccess"}]
    side = seen(role=own_role(RolePolicyList=[own], AttachedManagedPolicies=attached))
    assert sorted(side.undeclared.values()) == [
        "policy AdministratorAccess of the role demo-nodes: no stack declares it",
        "policy by-hand of the role demo-nodes: no stack declares it",
    ]  # fmt: skip
    assert "a" not in {one.name for one in side.snapshot.resources}, "its own attachment is gone"


GROUP = resource("aws:iam/groupPolicyAttachment:GroupPolicyAttachment", "g", group="scientists", policyArn=OWN)


def seen_of_users(known: tuple[str, ...] = (), user: Mapping[str, Any] = NOTHING, **group: Any) -> list[str]:
    """What is said of the group to which the stack gives its policy. `user`: what a member has."""
    attached = {"PolicyArn": OWN, "PolicyName": "demo-nodes"}
    row = {"GroupName": "scientists", "CreateDate": BEFORE, **group}
    row["AttachedManagedPolicies"] = [attached, *group.get("AttachedManagedPolicies", ())]
    declared = replace(DECLARED, resources=(*DECLARED.resources, GROUP))
    ann = {"CreateDate": BEFORE, "GroupList": ["scientists"], **user}
    side = seen(known=known, declared=declared, groups=(row,), ann=ann)
    return list(side.undeclared.values())


def test_any_right_of_the_stacks_users_beside_its_own_is_said() -> None:
    assert seen_of_users() == []
    admin = {"PolicyArn": "arn:aws:iam::aws:policy/AdministratorAccess", "PolicyName": "AdministratorAccess"}
    said = ["policy AdministratorAccess of the group scientists: no stack declares it"]
    assert seen_of_users(AttachedManagedPolicies=[admin]) == said
    assert seen_of_users(("policy AdministratorAccess",), AttachedManagedPolicies=[admin]) == []
    other = {"Statement": {"Effect": "Allow", "Action": "iam:*", "Resource": "*"}}
    inline = [{"PolicyName": "AdministratorAccess", "PolicyDocument": other}]
    assert seen_of_users(("policy AdministratorAccess",), GroupPolicyList=inline) == said


def test_a_user_who_is_newer_than_the_stack_and_in_its_group_is_said() -> None:
    said = ["user ann, made on 2026-06-01, in the group scientists: no stack declares it"]
    assert seen_of_users(user={"CreateDate": AFTER}) == said
    assert seen_of_users(("user ann",), user={"CreateDate": AFTER}) == []


def role_that_claims(document: Any, stack: str = "other") -> dict[str, Any]:
    tags = [{"Key": "managed-by", "Value": "trainyard"}, {"Key": "stack", "Value": stack}]
    return {"RoleName": "beside", "CreateDate": AFTER, "AssumeRolePolicyDocument": TRUST, "Tags": tags,
            "RolePolicyList": [{"PolicyName": "own", "PolicyDocument": document}]}  # fmt: skip


def test_tags_only_claim_that_another_stack_made_a_role() -> None:
    said = "policy own of the role beside: it says that it is of the stack other, "
    role = role_that_claims(DOCUMENT)
    assert list(seen(others=(role,)).undeclared.values()) == [f"{said}which is not known here"]
    inline = {"role": "beside", "name": "own"}
    documents: tuple[dict[str, Any], ...] = (DOCUMENT, {"Statement": []})
    for policy in documents:
        row = resource("aws:iam/rolePolicy:RolePolicy", "beside:own", **inline, policy=json.dumps(policy))
        side = seen(others=(role,), state=Snapshot("other", "aws-dl1", {}, (row,)))
        expected = [] if policy is DOCUMENT else [f"{said}whose last `up` did not make it so"]
        assert list(side.undeclared.values()) == expected
    assert not seen(others=(role,), known=("stack other",)).undeclared


def test_a_policy_in_another_order_is_as_declared_and_a_rewritten_one_is_not() -> None:
    again = {"Statement": [dict(reversed(DOCUMENT["Statement"][0].items()))]}
    assert seen(policy=own_policy(again)).snapshot == DECLARED
    assert seen(policy=own_policy({"Statement": []})).snapshot != DECLARED


def test_who_else_may_be_the_nodes_is_told() -> None:
    other = {**TRUST["Statement"][0], "Principal": {"AWS": "arn:aws:iam::999999999999:root"}}
    side = seen(role=own_role(AssumeRolePolicyDocument={"Statement": [*TRUST["Statement"], other]}))
    (role,) = side.snapshot.of(ROLE)
    assert "999999999999" in role.inputs["assumeRolePolicy"]


@pytest.mark.parametrize(
    ("declared", "live", "same"),
    [
        ('{"Statement": [{"Action": "a", "Sid": "x"}]}', '{"Statement": {"Action": ["a"]}}', True),
        ('{"Statement": [{"Action": ["a", "b"]}]}', '{"Statement": [{"Action": ["b", "a"]}]}', True),
        ('{"Statement": [{"Action": ["a"]}]}', '{"Statement": [{"Action": ["a", "b"]}]}', False),
        ("no document", "{", False),
        (["b", "a"], ["a", "b"], True),
        ({"status": "Enabled"}, {"status": "Suspended"}, False),
    ],
)
def test_documents_are_compared_by_what_they_say(declared: Any, live: Any, same: bool) -> None:
    assert (declared_or_live(declared, live) == declared) is same


def test_whom_a_policy_names() -> None:
    rows = [{"Principal": "*"}, {"Principal": {"AWS": ["a", "b"], "Service": "c"}}, {}]
    assert list(principals_in(json.dumps({"Statement": rows}))) == ["*", "a", "b", "c"]
    assert list(principals_in("no JSON")) == []
