# SPDX-License-Identifier: Apache-2.0
"""A tag that can be pushed again means another image tomorrow, and a run that starts again runs that one."""

from collections.abc import Mapping

from policies.rule import PASS, Judge, JudgedResource, PolicyRule, PolicyVerdict, Unknown, by_type, fail

REPOSITORY = "oci:Artifacts/containerRepository:ContainerRepository"
AWS_REPOSITORY = "aws:ecr/repository:Repository"
FIXED = "IMMUTABLE"
AGAIN = "a tag can be pushed again"


def judge_repository(resource: JudgedResource) -> PolicyVerdict:
    return PASS if resource.properties.get("isImmutable") else fail(AGAIN)


def judge_aws_repository(resource: JudgedResource) -> PolicyVerdict:
    return PASS if str(resource.properties.get("imageTagMutability")).startswith(FIXED) else fail(AGAIN)


ROWS: Mapping[str, Judge] = {REPOSITORY: judge_repository, AWS_REPOSITORY: judge_aws_repository}

RULE = PolicyRule(
    id="mutable-repository",
    # Advisory, because a stack may choose it: people try images out under one tag.
    level="advisory",
    asks="A tag of an image means the same image for ever.",
    remedy="set `trainyard:registry: { immutable: true }`, or name images by digest",
    types=tuple(ROWS),
    judge=by_type(ROWS),
    passes={
        "immutable": JudgedResource(REPOSITORY, {"isImmutable": True}),
        "immutable on AWS": JudgedResource(AWS_REPOSITORY, {"imageTagMutability": FIXED}),
    },
    fails={
        "OCI's default": JudgedResource(REPOSITORY, {"displayName": "vision/dt"}),
        "AWS's default": JudgedResource(AWS_REPOSITORY, {"name": "vision/dev/training"}),
    },
    unknown={
        "decided elsewhere": JudgedResource(AWS_REPOSITORY, {"imageTagMutability": Unknown("imageTagMutability")})
    },
)
