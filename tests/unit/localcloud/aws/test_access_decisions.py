# SPDX-License-Identifier: Apache-2.0
"""How the local AWS decides about access: patterns, conditions, boundaries and trust policies."""

import json
import time
from typing import Any

import pytest

from components.aws.iam.decide import (
    AwsPrincipal,
    InForce,
    Need,
    UnknownConditionError,
    UnknownVariableError,
    conditions_hold,
    decide_aws_call,
    fill_policy_variables,
    fits_arn,
    fits_wildcards,
    literal_text,
    trusts_principal,
)
from components.aws.iam.documents import PolicyDocument, UnreadableDocumentError, statements_of

USER = AwsPrincipal("arn:aws:iam::123456789012:user/user", user="user", id="AIDA")
OBJECT = "arn:aws:s3:::bucket/team/a"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("*", "", True), ("a*c", "abc", True), ("a?c", "abc", True), ("a?c", "ac", False), ("a*b*c", "axbxc", True),
        ("a*b", "abab", True), ("", "", True), ("", "a", False), ("*a", "ab", False), ("???", "ab", False),
    ],
)  # fmt: skip
def test_wildcards_match_any_text_or_one_character(pattern: str, text: str, expected: bool) -> None:
    assert fits_wildcards(pattern, text) is expected


def test_many_stars_are_matched_quickly() -> None:
    begun = time.process_time()
    assert not fits_wildcards("*a" * 200 + "b", "a" * 5000)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("pattern", "arn", "expected"),
    [
        ("arn:aws:s3:::bucket/*", OBJECT, True),
        ("arn:aws:s3:::bucket", OBJECT, False),
        ("arn:aws:ssm:us-east-1:*:document/AWS-*", "arn:aws:ssm:us-east-1::document/AWS-RunShellScript", True),
        ("arn:aws:ec2:*:123456789012:instance/*", "arn:aws:ec2:us-east-1:999999999999:instance/i-1", False),
        ("arn:aws:*", OBJECT, False),
        ("arn:aws:s3:::bucket/*", "*", False),
        ("*", "*", True),
    ],
)
def test_arns_match_part_by_part(pattern: str, arn: str, expected: bool) -> None:
    assert fits_arn(pattern, arn) is expected


def test_a_variable_is_one_value_of_the_request() -> None:
    keys = {"aws:username": ("user",), "aws:TagKeys": ("a", "b")}
    assert literal_text(fill_policy_variables("home/${aws:UserName}/${*}", keys)) == "home/user/*"
    for text in ("${aws:userid}", "${aws:TagKeys}"):
        with pytest.raises(UnknownVariableError):
            fill_policy_variables(text, keys)


@pytest.mark.parametrize(
    ("operator", "key", "wanted", "expected"),
    [
        ("StringEquals", "aws:ResourceTag/stack", ("ours",), True),
        ("StringEquals", "aws:ResourceTag/stack", ("OURS",), False),
        ("StringEqualsIgnoreCase", "aws:ResourceTag/stack", ("OURS",), True),
        ("StringNotEquals", "aws:ResourceTag/stack", ("ours",), False),
        ("StringNotEquals", "aws:ResourceTag/none", ("ours",), True),
        ("StringEquals", "aws:ResourceTag/none", ("ours",), False),
        ("StringEqualsIfExists", "aws:ResourceTag/none", ("ours",), True),
        ("StringLike", "s3:prefix", ("team/*",), True),
        ("Null", "aws:ResourceTag/none", ("true",), True),
        ("Null", "aws:ResourceTag/stack", ("true",), False),
        ("Bool", "aws:SecureTransport", ("true",), True),
        ("ForAllValues:StringEquals", "aws:TagKeys", ("a", "b", "c"), True),
        ("ForAllValues:StringEquals", "aws:TagKeys", ("a",), False),
        ("ForAnyValue:StringEquals", "aws:TagKeys", ("b",), True),
        ("NumericLessThan", "s3:max-keys", ("10",), True),
        ("NumericGreaterThanEquals", "s3:max-keys", ("5",), True),
        ("NumericLessThanIfExists", "aws:EpochTime", ("1",), True),
        ("DateLessThanEquals", "aws:CurrentTime", ("2026-05-01T00:00:00Z",), True),
        ("DateLessThan", "aws:CurrentTime", ("2026-05-01T00:00:00Z",), False),
        ("DateGreaterThanEquals", "aws:CurrentTime", ("2026-05-01",), True),
        ("DateEquals", "aws:CurrentTime", ("1777593600",), True),
        ("DateNotEquals", "aws:CurrentTime", ("2026",), True),
        ("ForAnyValue:StringNotEquals", "aws:ResourceTag/none", ("a",), False),
        ("ForAnyValue:StringNotEquals", "aws:TagKeys", ("a",), True),
        ("ForAnyValue:StringNotEquals", "aws:TagKeys", ("a", "b"), False),
        ("ForAnyValue:StringEqualsIfExists", "aws:ResourceTag/none", ("a",), True),
        ("ForAllValues:StringNotEquals", "aws:TagKeys", ("c",), True),
        ("ForAllValues:StringNotEquals", "aws:TagKeys", ("a",), False),
        ("IpAddress", "aws:SourceIp", ("127.0.0.0/8",), True),
        ("ArnLike", "iam:PolicyARN", ("arn:aws:iam::123456789012:policy/team-*",), True),
    ],
)
def test_condition_operators_compare_key_and_value(
    operator: str, key: str, wanted: tuple[str, ...], expected: bool
) -> None:
    keys = {
        "aws:ResourceTag/stack": ("ours",), "aws:SecureTransport": ("true",), "aws:TagKeys": ("a", "b"),
        "s3:prefix": ("team/a",), "s3:max-keys": ("5",), "aws:SourceIp": ("127.0.0.1",),
        "iam:PolicyARN": ("arn:aws:iam::123456789012:policy/team-nodes",),
        "aws:CurrentTime": ("2026-05-01T00:00:00+00:00",),
    }  # fmt: skip
    assert conditions_hold([(operator, key, wanted)], keys) is expected


@pytest.mark.parametrize(
    ("operator", "key"),
    [("StringIs", "s3:prefix"), ("ForAnyValue:Null", "s3:prefix"), ("StringEquals", "aws:MultiFactorAuthPresent")],
)
def test_an_unknown_condition_is_an_error(operator: str, key: str) -> None:
    with pytest.raises(UnknownConditionError):
        conditions_hold([(operator, key, ("x",))], {})


def _document(*statements: dict[str, Any]) -> PolicyDocument:
    return PolicyDocument("test", statements_of(json.dumps({"Version": "2012-10-17", "Statement": list(statements)})))


def _decided(identity: list[dict[str, Any]], boundary: list[dict[str, Any]] | None = None) -> bool:
    limits = (_document(*boundary),) if boundary is not None else ()
    return decide_aws_call(Need("s3:GetObject", OBJECT, {}), USER, InForce((_document(*identity),), limits)).allowed


ALLOW: dict[str, Any] = {"Effect": "Allow", "Action": "s3:get*", "Resource": "arn:aws:s3:::bucket/*"}


def test_a_deny_takes_precedence() -> None:
    assert _decided([ALLOW])
    assert not _decided([])
    assert not _decided([ALLOW, {"Effect": "Deny", "NotAction": "s3:PutObject", "Resource": "*"}])
    assert not _decided([{"Effect": "Allow", "Action": "s3:GetObject", "NotResource": "arn:aws:s3:::bucket/team/*"}])
    assert _decided([{"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}])


def test_a_boundary_only_limits() -> None:
    assert _decided([ALLOW], [ALLOW])
    assert not _decided([ALLOW], [])
    assert not _decided([], [ALLOW])


def test_an_unreadable_document_is_an_error() -> None:
    for text in (
        "",
        "{}",
        "[]",
        '{"Statement": [{"Effect": "Perhaps"}]}',
        '{"Statement": [{"Effect": "Allow", "X": 1}]}',
    ):
        with pytest.raises(UnreadableDocumentError):
            statements_of(text)
    need = Need("s3:GetObject", OBJECT, {})
    assert not decide_aws_call(need, USER, InForce((_document(ALLOW),), unreadable="a policy")).allowed


def test_not_principal_matches_everybody_else() -> None:
    other = AwsPrincipal("arn:aws:iam::123456789012:user/other", user="other")
    for named, denied in (
        ({"AWS": USER.arn}, (False, True)),
        ({"AWS": "arn:aws:iam::123456789012:root"}, (True, True)),
    ):
        statement = {"Effect": "Deny", "NotPrincipal": named, "Action": "s3:*", "Resource": "*"}
        policies = InForce((_document(ALLOW),), of_resource=(_document(statement),))
        need = Need("s3:GetObject", OBJECT, {})
        assert tuple(not decide_aws_call(need, one, policies).allowed for one in (USER, other)) == denied


def test_a_trust_policy_names_who_may_assume_a_role() -> None:
    trust = _document({"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"})
    assert trusts_principal(trust, {}, service="ec2.amazonaws.com")
    assert not trusts_principal(trust, {}, service="lambda.amazonaws.com")
    assert not trusts_principal(trust, {}, principal=USER)
    named = _document({"Effect": "Allow", "Principal": {"AWS": USER.arn}, "Action": "sts:AssumeRole"})
    assert trusts_principal(named, {}, principal=USER)
    assert not trusts_principal(named, {}, principal=AwsPrincipal("arn:aws:iam::123456789012:user/other", user="other"))
