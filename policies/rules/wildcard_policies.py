# SPDX-License-Identifier: Apache-2.0
"""A policy for all actions, or for all resources, also covers those of next year."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from catalog.reason_tags import PROOF_OF_CONCEPT, WILDCARD_POLICIES
from catalog.tables import table
from components.aws.types.deployer_actions import rows_of_kind
from policies.documents import ANY, IDENTITY_POLICIES, as_list, readable_statements
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because, verdict_on_every

POLICY = "aws:iam/policy:Policy"


def judge_wildcards(resource: JudgedResource) -> PolicyVerdict:
    statements = readable_statements(resource.properties.get(IDENTITY_POLICIES[resource.type]))
    verdict = verdict_on_every(judge_wildcard_statement, statements)
    return PASS if verdict.outcome == "fail" and resource.tags.get(WILDCARD_POLICIES) == PROOF_OF_CONCEPT else verdict


def judge_wildcard_statement(statement: Mapping[str, Any]) -> PolicyVerdict:
    if statement.get("Effect") != "Allow":
        return PASS
    actions = as_list(statement.get("Action"))
    wide = [action for action in actions if str(action).partition(":")[2] in ("", ANY)]
    if wide or "NotAction" in statement:
        return fail_because(f"grants {', '.join(map(str, wide)) or 'every action but some'}")
    if ANY not in as_list(statement.get("Resource")) and "NotResource" not in statement:
        return PASS
    narrower = sorted(str(action) for action in actions if action not in without_resources())
    more = f" and {len(narrower) - 3} more" if len(narrower) > 3 else ""
    return fail_because(f"grants {', '.join(narrower[:3])}{more} on every resource") if narrower else PASS


@cache
def without_resources() -> frozenset[str]:
    """Actions for which AWS knows no narrower resource."""
    rows = table("aws_dl1_access")
    parts = [listed_rows for part in ("actions", "users", "runs") for listed_rows in rows[part].values()]
    parts += [rows_of_kind(kind) for kind in rows["deployer"]]
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
    types=tuple(IDENTITY_POLICIES),
    judge=judge_wildcards,
    passes={
        "named": _policy_allowing(["s3:GetObject"], "arn:aws:s3:::vision-dev-training/*"),
        "what AWS knows no resource for": _policy_allowing(["ecr:GetAuthorizationToken", "ec2:DescribeInstances"], "*"),
        "for a trial": _policy_allowing("*", "*", {WILDCARD_POLICIES: PROOF_OF_CONCEPT}),
        "denied": _policy_allowing("s3:*", "*", Effect="Deny"),
    },
    fails={
        "everything": _policy_allowing("*", "*"),
        "a whole service": _policy_allowing(["s3:*"], "arn:aws:s3:::vision-dev-training/*"),
        "every bucket": _policy_allowing(["s3:GetObject", "s3:PutObject"], "*"),
        "a role for any machine": _policy_allowing("iam:PassRole", ["*"]),
        "all but something": JudgedResource(
            POLICY, {"policy": '{"Statement": {"Effect": "Allow", "NotAction": "iam:*", "Resource": "arn:aws:s3:::a"}}'}
        ),
    },
    unknown={"names another resource": JudgedResource(POLICY, {"policy": Unknown("policy")})},
)
