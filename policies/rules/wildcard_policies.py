# SPDX-License-Identifier: Apache-2.0
"""A policy for all actions, or for all resources, also covers those of next year."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from catalog.reason_tags import PROOF_OF_CONCEPT, WILDCARD_POLICIES
from catalog.tables import table
from policies.aws_grants import is_every_resource, is_wide_action
from policies.documents import IDENTITY_TYPES, as_list, identity_statements
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because, verdict_on_every

POLICY = "aws:iam/policy:Policy"


def judge_wildcards(resource: JudgedResource) -> PolicyVerdict:
    statements = identity_statements(resource.properties, resource.type)
    verdict = verdict_on_every(judge_wildcard_statement, statements)
    return PASS if verdict.outcome == "fail" and resource.tags.get(WILDCARD_POLICIES) == PROOF_OF_CONCEPT else verdict


def judge_wildcard_statement(statement: Mapping[str, Any]) -> PolicyVerdict:
    if statement.get("Effect") != "Allow":
        return PASS
    actions = as_list(statement.get("Action"))
    wide = [action for action in actions if is_wide_action(str(action))]
    if wide or "NotAction" in statement:
        return fail_because(f"grants {', '.join(map(str, wide)) or 'every action but some'}")
    everything = any(is_every_resource(str(pattern)) for pattern in as_list(statement.get("Resource")))
    if not everything and "NotResource" not in statement:
        return PASS
    narrower = sorted(str(action) for action in actions if action not in without_resources())
    more = f" and {len(narrower) - 3} more" if len(narrower) > 3 else ""
    return fail_because(f"grants {', '.join(narrower[:3])}{more} on every resource") if narrower else PASS


@cache
def without_resources() -> frozenset[str]:
    """Actions for which AWS knows no narrower resource."""
    # Only a statement on every resource needs these rows.
    from components.aws.types.deployer_actions import drift_rows_of_kind, rows_of_kind

    access = table("aws_dl1_access")
    parts = [listed_rows for part in ("actions", "users", "runs") for listed_rows in access[part].values()]
    parts += [rows(kind) for rows in (rows_of_kind, drift_rows_of_kind) for kind in access["deployer"]]
    return frozenset(
        action for listed_rows in parts for row in listed_rows if row["on"] == "all" for action in row["actions"]
    )


def _policy_allowing(action: Any, resource: Any, tags: Mapping[str, str] | None = None, **more: Any) -> JudgedResource:
    statement = {"Effect": "Allow", "Action": action, "Resource": resource, **more}
    return JudgedResource(POLICY, {"policy": {"Statement": [statement]}, "tags": tags or {}})


RULE = PolicyRule(
    id="wildcard-policies",
    level="mandatory",
    asks="Policies name actions and resources, as far as AWS knows narrower ones.",
    remedy="list the actions and ARNs; if you mean everything, tag the policy"
    f" `{WILDCARD_POLICIES}: {PROOF_OF_CONCEPT}`",
    types=IDENTITY_TYPES,
    judge=judge_wildcards,
    passes={
        "named": _policy_allowing(["s3:GetObject"], "arn:aws:s3:::vision-dev-training/*"),
        "what AWS knows no resource for": _policy_allowing(["ecr:GetAuthorizationToken", "ec2:DescribeInstances"], "*"),
        "for a trial": _policy_allowing("*", "*", {WILDCARD_POLICIES: PROOF_OF_CONCEPT}),
        "reading what rights there are": _policy_allowing("iam:Get*", "arn:aws:iam::123456789012:role/vision"),
        "a role without policies inside": JudgedResource("aws:iam/role:Role", {"name": "vision"}),
        "denied": _policy_allowing("s3:*", "*", Effect="Deny"),
    },
    fails={
        "everything": _policy_allowing("*", "*"),
        "a whole service": _policy_allowing(["s3:*"], "arn:aws:s3:::vision-dev-training/*"),
        "every bucket": _policy_allowing(["s3:GetObject", "s3:PutObject"], "*"),
        "a role for any machine": _policy_allowing("iam:PassRole", ["*"]),
        "a whole service by another pattern": _policy_allowing("s3:?*", "arn:aws:s3:::vision-dev-training/*"),
        "what hands out rights": _policy_allowing("iam:Put*", "arn:aws:iam::123456789012:role/vision"),
        "every resource by another pattern": _policy_allowing("s3:GetObject", "arn:aws:*"),
        "inside a role": JudgedResource(
            "aws:iam/role:Role",
            {"inlinePolicies": [{"policy": {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}}]},
        ),
        "all but something": JudgedResource(
            POLICY, {"policy": '{"Statement": {"Effect": "Allow", "NotAction": "iam:*", "Resource": "arn:aws:s3:::a"}}'}
        ),
    },
    unknown={"names another resource": JudgedResource(POLICY, {"policy": Unknown("policy")})},
)
