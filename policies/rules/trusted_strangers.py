# SPDX-License-Identifier: Apache-2.0
"""Roles, keys and secrets must name who may use them. `*` is everybody, in every account of AWS."""

from policies.documents import RESOURCE_POLICIES, is_open_to_all, readable_statements, types_with_policy_of
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because, verdict_on_every

# The rules public-bucket and public-repository judge buckets and repositories.
TYPES = tuple(token for token in RESOURCE_POLICIES if token not in types_with_policy_of("bucket", "repository"))
ROLE, KEY = "aws:iam/role:Role", "aws:kms/key:Key"


def judge_trust(resource: JudgedResource) -> PolicyVerdict:
    statements = readable_statements(resource.properties.get(RESOURCE_POLICIES[resource.type].policy))
    return verdict_on_every(
        lambda one: fail_because("it trusts anybody in any account") if is_open_to_all(one) else PASS, statements
    )


def _role_trusting(principal: str, more: str = "") -> JudgedResource:
    statement = f'{{"Effect": "Allow", "Principal": {principal}, "Action": "sts:AssumeRole"{more}}}'
    return JudgedResource(ROLE, {"assumeRolePolicy": f'{{"Version": "2012-10-17", "Statement": [{statement}]}}'})


RULE = PolicyRule(
    id="trusted-strangers",
    level="mandatory",
    asks="Roles, keys and secrets trust those that they name, never everybody.",
    remedy="name a service or the accounts as Principal, or narrow `*` by a condition such as aws:PrincipalOrgID",
    types=TYPES,
    judge=judge_trust,
    passes={
        "a service": _role_trusting('{"Service": "ec2.amazonaws.com"}'),
        "an account": _role_trusting('{"AWS": "arn:aws:iam::123456789012:root"}'),
        "a company": _role_trusting('"*"', ', "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-0a1b2c3d4e"}}'),
        "AWS's default of a key": JudgedResource(KEY, {"description": "training data"}),
    },
    fails={
        "everybody": _role_trusting('"*"'),
        "every account": _role_trusting('{"AWS": ["123456789012", "*"]}'),
        "everybody but one": JudgedResource(
            ROLE, {"assumeRolePolicy": '{"Statement": {"Effect": "Allow", "NotPrincipal": {"AWS": "123456789012"}}}'}
        ),
    },
    unknown={"decided elsewhere": JudgedResource(ROLE, {"assumeRolePolicy": Unknown("assumeRolePolicy")})},
)
