# SPDX-License-Identifier: Apache-2.0
"""AWS's own policies cover the whole account, and grow without anybody's change. Nobody reviews what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from catalog.production import is_production
from catalog.tables import table
from components.values.resource_types import TypesWith
from policies.documents import as_list
from policies.rule import (
    PASS,
    JudgedResource,
    JudgedStack,
    NotKnownError,
    PolicyVerdict,
    StackRule,
    StackVerdict,
    Unknown,
    fail_because,
    unknown_because,
    verdict_on_every,
    verdicts_on_each,
)

ROLE, POLICY = "aws:iam/role:Role", "aws:iam/policy:Policy"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
OTHER_TYPES = (
    "aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive",
    "aws:ssoadmin/managedPolicyAttachment:ManagedPolicyAttachment",
)
TYPES = TypesWith(lambda row: row.part in ("policy attachment", "role"), dict.fromkeys(OTHER_TYPES, True))
# The inputs with ARNs of policies.
ARNS = ("policyArn", "policyArns", "managedPolicyArn", "managedPolicyArns")
_OF_AWS = re.compile(r"arn:aws[^:]*:iam::aws:policy/(.+)")
# How AWS calls what it lets do everything with a service, or with the account.
WIDE = re.compile(r"Administrator|FullAccess|PowerUser|job-function/|Admin$|DataScientist")
# Of these AWS documents that they are what machines of a stack need, and no more.
NARROW = ("AmazonSSMManagedInstanceCore", "AmazonEC2ContainerRegistryPullOnly", "CloudWatchAgentServerPolicy")
PROOF_OF_CONCEPT = "proof-of-concept"


def judge_attachments(stack: JudgedStack) -> Iterator[StackVerdict]:
    yield from verdicts_on_each(lambda resource: judge_attached(resource, stack), stack.of_types(TYPES))


def judge_attached(resource: JudgedResource, stack: JudgedStack) -> PolicyVerdict:
    arns = [arn for key in ARNS for arn in as_list(resource.properties.get(key))]
    return verdict_on_every(lambda arn: judge_arn(arn, stack), arns)


def judge_arn(arn: Any, stack: JudgedStack) -> PolicyVerdict:
    policies = stack.of(POLICY)
    if isinstance(arn, Unknown) and policies:
        return PASS  # one of these, whose statements other rules judge
    of_aws = _OF_AWS.fullmatch(str(arn))
    if of_aws is None:
        called = str(arn).rpartition("/")[2]
        own = any(called in _names_of(policy) for policy in policies)
        return PASS if own else unknown_because(f"`{arn}` is not a policy of this stack, so nobody sees its statements")
    name = of_aws[1]
    by_mode = table("aws_dl1_access")["managed"].get(stack.access_mode, {})
    if name in (*by_mode.get("users", ()), *by_mode.get("runs", ())):
        if stack.access_mode == PROOF_OF_CONCEPT and is_production(stack.environment):
            return fail_because(f"attaches {name} in the environment `{stack.environment}`")
        return PASS
    if WIDE.search(name):
        return fail_because(f"attaches {name}, which lets do more than this stack needs")
    return PASS if name in NARROW else unknown_because(f"what AWS's own policy {name} allows")


def _names_of(policy: JudgedResource) -> tuple[str, ...]:
    try:
        return str(policy.properties.get("name") or policy.name), policy.name
    except NotKnownError:
        return (policy.name,)


def _stack_attaching(*arns: Any, **stack: Any) -> JudgedStack:
    attached = (
        JudgedResource(ATTACHMENT, {"role": "nodes", "policyArn": arn}, f"nodes-{number}")
        for number, arn in enumerate(arns)
    )
    return JudgedStack(tuple(attached), **stack)


def _aws_policy(name: str) -> str:
    return f"arn:aws:iam::aws:policy/{name}"


RULE = StackRule(
    id="attached-policies",
    level="mandatory",
    asks="Nobody gets AWS's own policies for a whole service or account, except by the mode of the stack.",
    remedy="write a policy with the actions and ARNs that are needed; or set the mode of `trainyard:access` that"
    " attaches AWS's policies (`documented`)",
    types=TYPES,
    judge=judge_attachments,
    passes={
        "what the mode attaches": _stack_attaching(_aws_policy("AmazonS3FullAccess"), access_mode="documented"),
        "everything, for a trial": _stack_attaching(
            _aws_policy("AdministratorAccess"), access_mode=PROOF_OF_CONCEPT, environment="dev"
        ),
        "what a machine needs": _stack_attaching(_aws_policy("AmazonSSMManagedInstanceCore")),
        "a policy of the stack": JudgedStack(
            (
                JudgedResource(POLICY, {"name": "vision-dev-runs", "policy": "{}"}, "runs"),
                JudgedResource(ATTACHMENT, {"policyArn": "arn:aws:iam::123456789012:policy/vision-dev-runs"}, "nodes"),
            )
        ),
        "a policy that is made later": JudgedStack(
            (
                JudgedResource(POLICY, {"name": "vision-dev-runs", "policy": "{}"}, "runs"),
                JudgedResource(ATTACHMENT, {"policyArn": Unknown("policyArn")}, "nodes"),
            )
        ),
        "a role without any": JudgedStack((JudgedResource(ROLE, {"name": "nodes"}, "nodes"),)),
    },
    fails={
        "an administrator": _stack_attaching(_aws_policy("AdministratorAccess")),
        "in China": _stack_attaching("arn:aws-cn:iam::aws:policy/AdministratorAccess"),
        "a whole service": _stack_attaching(_aws_policy("AmazonS3FullAccess")),
        "more than the mode attaches": _stack_attaching(_aws_policy("IAMFullAccess"), access_mode="documented"),
        "a trial in production": _stack_attaching(
            _aws_policy("AdministratorAccess"), access_mode=PROOF_OF_CONCEPT, environment="prod"
        ),
        "in a role's own list": JudgedStack(
            (JudgedResource(ROLE, {"managedPolicyArns": [_aws_policy("PowerUserAccess")]}, "nodes"),)
        ),
    },
    unknown={
        "a policy of somebody else": _stack_attaching("arn:aws:iam::123456789012:policy/shared"),
        "another policy of AWS": _stack_attaching(_aws_policy("AWSHealthAccess")),
        "decided elsewhere": _stack_attaching(Unknown("policyArn")),
    },
)
