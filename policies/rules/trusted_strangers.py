# SPDX-License-Identifier: Apache-2.0
"""Roles, keys and secrets must name who may use them. `*` is everybody, in every account of AWS; `any-user` is
everybody in a tenancy of OCI, and whatever acts there."""

from collections.abc import Mapping
from typing import Any

from components.oci.iam.parse import parse_statement
from components.oci.iam.statement import StatementError
from components.values.resource_types import TypesWith
from policies.documents import RESOURCE_POLICIES, allowed_values, has_policy_of, readable_statements
from policies.rule import (
    PASS,
    JudgedResource,
    PolicyRule,
    PolicyVerdict,
    Unknown,
    by_type,
    fail_because,
    verdict_on_every,
)
from policies.strangers import lets_strangers_in

# The rules public-bucket and public-repository judge these.
OTHER_RULES = ("bucket", "access point", "repository")
ROLE, KEY = "aws:iam/role:Role", "aws:kms/key:Key"
POLICY, FUNCTION = "oci:Identity/policy:Policy", "aws:lambda/permission:Permission"
# What a statement for everybody has to be narrowed by.
CALLERS = (
    "request.principal.id",
    "request.principal.type",
    "request.principal.compartment.id",
    "request.user.id",
    "request.user.name",
    "request.groups.id",
    "request.groups.name",
)


def judge_trust(resource: JudgedResource) -> PolicyVerdict:
    statements = readable_statements(resource.properties.get(RESOURCE_POLICIES[resource.type].policy))
    return verdict_on_every(judge_trusting_statement, statements)


def judge_trusting_statement(statement: Mapping[str, Any]) -> PolicyVerdict:
    return fail_because("it trusts anybody in any account") if lets_strangers_in(statement) else PASS


def judge_caller(resource: JudgedResource) -> PolicyVerdict:
    return fail_because("anybody may call it") if resource.properties.get("principal") == "*" else PASS


def judge_subjects(resource: JudgedResource) -> PolicyVerdict:
    return verdict_on_every(judge_subject, resource.properties.get("statements") or ())


def judge_subject(text: Any) -> PolicyVerdict:
    try:
        statement = parse_statement(str(text))
    except StatementError:
        return PASS  # statements-parse reports it
    if statement.subject.kind not in ("any-user", "any-group"):
        return PASS
    narrowed = any(allowed_values(statement.condition, caller) is not None for caller in CALLERS)
    return PASS if narrowed else fail_because(f"`{text}` is for everybody in the tenancy")


def _role_trusting(principal: str, more: str = "", action: str = "sts:AssumeRole") -> JudgedResource:
    statement = f'{{"Effect": "Allow", "Principal": {principal}, "Action": "{action}"{more}}}'
    return JudgedResource(ROLE, {"assumeRolePolicy": f'{{"Version": "2012-10-17", "Statement": [{statement}]}}'})


def _role_trusting_tokens(condition: str) -> JudgedResource:
    issuer = "token.actions.githubusercontent.com"
    provider = f'{{"Federated": "arn:aws:iam::123456789012:oidc-provider/{issuer}"}}'
    return _role_trusting(provider, f', "Condition": {{{condition.format(issuer)}}}', "sts:AssumeRoleWithWebIdentity")


def _policy_for(subject: str, condition: str = "") -> JudgedResource:
    return JudgedResource(POLICY, {"statements": [f"Allow {subject} to read metrics in compartment ml{condition}"]})


ROWS = TypesWith(
    lambda row: judge_trust if row.own_policy and not has_policy_of(row, *OTHER_RULES) else None,
    {FUNCTION: judge_caller, POLICY: judge_subjects},
)

RULE = PolicyRule(
    id="trusted-strangers",
    level="mandatory",
    asks="Roles, keys and secrets trust those that they name, never everybody.",
    remedy="name a service or the accounts as Principal, or narrow `*` by a condition that strangers do not meet, such"
    " as aws:PrincipalOrgID; a token's by its subject; on OCI name a group, or narrow `any-user` by its caller",
    types=ROWS,
    judge=by_type(ROWS),
    passes={
        "a service": _role_trusting('{"Service": "ec2.amazonaws.com"}'),
        "an account": _role_trusting('{"AWS": "arn:aws:iam::123456789012:root"}'),
        "a company": _role_trusting('"*"', ', "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-0a1b2c3d4e"}}'),
        "tokens of a repository": _role_trusting_tokens('"StringLike": {{"{}:sub": "repo:vision/train:*"}}'),
        "a company's own sign-in": _role_trusting(
            '{"Federated": "arn:aws:iam::123456789012:saml-provider/vision"}', action="sts:AssumeRoleWithSAML"
        ),
        "AWS's default of a key": JudgedResource(KEY, {"description": "training data"}),
        "a function for a bucket": JudgedResource(FUNCTION, {"principal": "s3.amazonaws.com"}),
        "a group": _policy_for("group scientists"),
        "what acts in one place": _policy_for("any-user", " where request.principal.type = 'datasciencejobrun'"),
    },
    fails={
        "everybody": _role_trusting('"*"'),
        "every account": _role_trusting('{"AWS": ["123456789012", "*"]}'),
        "everybody but one": JudgedResource(
            ROLE, {"assumeRolePolicy": '{"Statement": {"Effect": "Allow", "NotPrincipal": {"AWS": "123456789012"}}}'}
        ),
        "whoever meets what anybody meets": _role_trusting(
            '"*"', ', "Condition": {"Bool": {"aws:SecureTransport": "true"}}'
        ),
        "tokens of any repository": _role_trusting_tokens('"StringEquals": {{"{}:aud": "sts.amazonaws.com"}}'),
        "a function for everybody": JudgedResource(FUNCTION, {"principal": "*"}),
        "everybody in the tenancy": _policy_for("any-user"),
    },
    unknown={
        "decided elsewhere": JudgedResource(ROLE, {"assumeRolePolicy": Unknown("assumeRolePolicy")}),
        "a statement that names another resource": JudgedResource(POLICY, {"statements": [Unknown("statements[0]")]}),
    },
)
