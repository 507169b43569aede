# SPDX-License-Identifier: Apache-2.0
"""Policies and values that AWS refuses, conditions as AWS evaluates them, and the simulation of policies."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.aws_clients import AwsClients, refused

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/strict"
READ = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::strict/*"}
TRUST = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "sts:AssumeRole"}


def policy(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def without(statement: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in statement.items() if name != key}


@pytest.fixture(scope="module")
def role(aws: AwsClients) -> str:
    aws["iam"].create_role(RoleName="strict", AssumeRolePolicyDocument=policy(TRUST))
    return ROLE


@pytest.mark.parametrize(
    "document",
    [
        "{", '{"x": 1}', policy(), policy(without(READ, "Effect")), policy(without(READ, "Action")),
        policy(without(READ, "Resource")), policy(READ | {"Principal": "*"}), policy(READ | {"NotPrincipal": "*"}),
        policy(READ | {"NotAction": "s3:*"}), policy(READ | {"Condition": {"StringIs": {"s3:prefix": "a"}}}),
        policy(READ | {"Condition": {"NullIfExists": {"s3:prefix": "true"}}}), policy(READ | {"Who": "me"}),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("role")
def test_a_malformed_policy_is_refused(aws: AwsClients, document: str) -> None:
    iam = aws["iam"]
    for call in (
        lambda: iam.create_policy(PolicyName="malformed", PolicyDocument=document),
        lambda: iam.put_role_policy(RoleName="strict", PolicyName="malformed", PolicyDocument=document),
    ):
        assert refused(call)[0] == "MalformedPolicyDocument"


@pytest.mark.parametrize(
    "statement",
    [
        without(TRUST, "Principal"), TRUST | {"Resource": "*"}, TRUST | {"Action": "s3:GetObject"},
        TRUST | {"Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:role/nobody"}}, TRUST | {"Principal": "nobody"},
    ],
)  # fmt: skip
def test_a_trust_policy_with_a_missing_principal_is_refused(
    aws: AwsClients, role: str, statement: Mapping[str, Any]
) -> None:
    iam = aws["iam"]
    for call in (
        lambda: iam.create_role(RoleName="malformed", AssumeRolePolicyDocument=policy(statement)),
        lambda: iam.update_assume_role_policy(RoleName="strict", PolicyDocument=policy(statement)),
    ):
        assert refused(call)[0] == "MalformedPolicyDocument"


@pytest.mark.usefixtures("role")
def test_a_policy_that_is_too_long_is_refused(aws: AwsClients) -> None:
    iam = aws["iam"]

    def of_length(length: int) -> str:
        document = policy(READ)
        return document.replace("/*", "/" + "a" * (length - len("".join(document.split())) + 1))

    made = iam.create_policy(PolicyName="fits", PolicyDocument=of_length(6144) + " " * 500)["Policy"]["Arn"]
    iam.delete_policy(PolicyArn=made)
    assert refused(iam.create_policy, PolicyName="long", PolicyDocument=of_length(6145)) == (
        "LimitExceeded", "Cannot exceed quota for PolicySize: 6144",
    )  # fmt: skip
    # The inline policies of a role have a limit for their total size.
    named = {"RoleName": "strict", "PolicyName": "first"}
    iam.put_role_policy(**named, PolicyDocument=of_length(6000))
    iam.put_role_policy(**named, PolicyDocument=of_length(6000))
    second = {**named, "PolicyName": "second"}
    code, message = refused(iam.put_role_policy, **second, PolicyDocument=of_length(6000))
    assert (code, message) == ("LimitExceeded", "Maximum policy size of 10240 bytes exceeded for role strict")
    iam.delete_role_policy(**named)


def test_a_session_lasts_no_longer_than_its_role(aws: AwsClients, role: str) -> None:
    sts = aws["sts"]
    wanted = {"RoleArn": role, "RoleSessionName": "me"}
    session = sts.assume_role(**wanted, DurationSeconds=3600)["Credentials"]
    code, message = refused(sts.assume_role, **wanted, DurationSeconds=3601)
    assert (code, "MaxSessionDuration" in message) == ("ValidationError", True)
    aws["iam"].update_role(RoleName="strict", MaxSessionDuration=7200)
    sts.assume_role(**wanted, DurationSeconds=7200)
    assert refused(sts.assume_role, **wanted, DurationSeconds=43_201)[0] == "ValidationError"
    named = {"RoleName": "strict", "PolicyName": "chain"}
    again = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": role}
    aws["iam"].put_role_policy(**named, PolicyDocument=policy(again))
    chained = aws.with_keys(session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"])["sts"]
    assert "role chaining" in refused(chained.assume_role, **wanted, DurationSeconds=7200)[1]
    aws["iam"].delete_role_policy(**named)


@pytest.mark.parametrize(
    ("condition", "key", "values", "decision"),
    [
        ({"DateLessThanEquals": {"aws:CurrentTime": "2030-01-01"}}, "aws:CurrentTime", ["2029-12-31T00:00:00Z"], True),
        ({"DateGreaterThanEquals": {"aws:CurrentTime": "2030-01-01T00:00:00Z"}}, "aws:CurrentTime",
         ["2029-12-31T00:00:00Z"], False),
        ({"ForAnyValue:StringNotEquals": {"aws:TagKeys": "a"}}, "aws:PrincipalArn", [ROLE], False),
        ({"ForAnyValue:StringNotEquals": {"aws:TagKeys": "a"}}, "aws:TagKeys", ["a", "b"], True),
        ({"ForAllValues:StringEquals": {"aws:TagKeys": "a"}}, "aws:PrincipalArn", [ROLE], True),
        ({"StringEqualsIfExists": {"aws:username": "me"}}, "aws:PrincipalArn", [ROLE], True),
        ({"NumericGreaterThanEqualsIfExists": {"s3:max-keys": "10"}}, "s3:max-keys", ["9"], False),
    ],
)  # fmt: skip
def test_custom_policies_are_simulated(
    aws: AwsClients, role: str, condition: Mapping[str, Any], key: str, values: list[str], decision: bool
) -> None:
    answer = aws["iam"].simulate_principal_policy(
        PolicySourceArn=role, PolicyInputList=[policy(READ | {"Condition": condition})], ActionNames=["s3:GetObject"],
        ResourceArns=["arn:aws:s3:::strict/a"],
        ContextEntries=[{"ContextKeyName": key, "ContextKeyValues": values, "ContextKeyType": "stringList"}],
    )  # fmt: skip
    (row,) = answer["EvaluationResults"]
    assert row["EvalDecision"] == ("allowed" if decision else "implicitDeny")


def test_policies_of_users_roles_and_groups_are_simulated(aws: AwsClients, role: str) -> None:
    iam = aws["iam"]

    def decided(of: str, action: str, resource: str = "*", *more: str) -> str:
        asked = {"PolicySourceArn": of, "ActionNames": [action], "ResourceArns": [resource]}
        rows = iam.simulate_principal_policy(**asked, PolicyInputList=list(more))["EvaluationResults"]
        assert [(row["EvalActionName"], row["EvalResourceName"]) for row in rows] == [(action, resource)]
        return str(rows[0]["EvalDecision"])

    administrators = iam.get_group(GroupName="administrators")["Group"]["Arn"]
    deployer = iam.get_user(UserName="deployer")["User"]["Arn"]
    assert decided(administrators, "ec2:RunInstances") == decided(deployer, "ec2:RunInstances") == "allowed"
    assert decided(role, "ec2:RunInstances") == "implicitDeny"
    denial = policy({"Effect": "Deny", "Action": "ec2:*", "Resource": "*"})
    assert decided(deployer, "ec2:RunInstances", "*", denial) == "explicitDeny"
    nobody = f"arn:aws:iam::{ACCOUNT}:user/nobody"
    code = refused(iam.simulate_principal_policy, PolicySourceArn=nobody, ActionNames=["s3:GetObject"])[0]
    assert code == "NoSuchEntity"


def test_values_outside_of_their_limits_are_refused(aws: AwsClients) -> None:
    logs, iam = aws["logs"], aws["iam"]
    logs.create_log_group(logGroupName="/strict")
    invalid = "InvalidParameterException"
    for name in ("a:b", "a*", "x" * 513):
        assert refused(logs.create_log_stream, logGroupName="/strict", logStreamName=name)[0] == invalid, name
    assert refused(logs.create_log_group, logGroupName="with space")[0] == invalid
    assert refused(logs.put_retention_policy, logGroupName="/strict", retentionInDays=13)[0] == invalid
    logs.put_retention_policy(logGroupName="/strict", retentionInDays=14)
    assert refused(iam.create_user, UserName="with space")[0] == "ValidationError"
    assert refused(aws["ecr"].create_repository, repositoryName="Upper")[0] == invalid
    code, message = refused(aws["secretsmanager"].create_secret, Name="x", SecretString="s" * 65_537)
    assert (code, "ssss" in message) == ("ValidationException", False), "secrets are not repeated"


def test_log_lines_are_found_by_a_filter_pattern(aws: AwsClients) -> None:
    logs = aws["logs"]
    named = {"logGroupName": "/lines", "logStreamName": "node"}
    logs.create_log_group(logGroupName="/lines")
    logs.create_log_stream(**named)
    lines = ["step 1 loss", "step 2 error", "an error: main-0"]
    now = int(time.time() * 1000)
    logs.put_log_events(**named, logEvents=[{"timestamp": now, "message": line} for line in lines])

    def found(pattern: str) -> list[int]:
        events = logs.filter_log_events(logGroupName="/lines", filterPattern=pattern)["events"]
        return sorted(lines.index(event["message"]) for event in events)

    for pattern, wanted in {
        "": [0, 1, 2], "step": [0, 1], "step error": [1], "-error": [0], "step -error": [0], '"main-0"': [2],
        "?loss ?main": [0, 2], '-"main-0" error': [1],
    }.items():  # fmt: skip
        assert found(pattern) == wanted, pattern
    assert refused(found, "main-0") == ("InvalidParameterException", "Invalid character(s) in term 'main-0'")
    assert refused(found, "{ $.a = 1 }")[0] == "UnknownOperationException"


def test_missing_operations_are_named(aws: AwsClients) -> None:
    code, message = refused(aws["ssm"].start_session, Target="i-0123456789abcdef0")
    assert (code, "The local AWS does not implement ssm.StartSession" in message) == ("UnknownOperationException", True)
    assert "SendCommand" in message, "and what to do instead"
