# SPDX-License-Identifier: Apache-2.0
"""Only the team may read its training data and results."""

from collections.abc import Mapping

from components.values.resource_types import types_of_part
from policies.documents import is_open_to_all, readable_statements, types_with_policy_of
from policies.rule import (
    PASS,
    Judge,
    JudgedResource,
    PolicyRule,
    PolicyVerdict,
    Unknown,
    by_type,
    fail_because,
    verdict_on_every,
)

BUCKET = "oci:ObjectStorage/bucket:Bucket"
PRIVATE = "NoPublicAccess"
AWS_BUCKET = "aws:s3/bucket:Bucket"
BUCKET_ACL = "aws:s3/bucketAcl:BucketAcl"
BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
BUCKET_POLICY = "aws:s3/bucketPolicy:BucketPolicy"
BLOCKED = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
OPEN_ACLS = ("public-read", "public-read-write", "authenticated-read")


def judge_bucket(resource: JudgedResource) -> PolicyVerdict:
    """By the access type that OCI has, or the list that AWS has."""
    access = resource.properties.get("accessType") or PRIVATE
    return judge_acl(resource) if access == PRIVATE else fail_because(f"accessType {access} lets anybody read objects")


def judge_acl(resource: JudgedResource) -> PolicyVerdict:
    acl = resource.properties.get("acl")
    return fail_because(f"acl {acl} lets anybody read objects") if acl in OPEN_ACLS else PASS


def judge_block(resource: JudgedResource) -> PolicyVerdict:
    def judge_part(part: str) -> PolicyVerdict:
        return PASS if resource.properties.get(part) else fail_because(f"{part} is not set")

    return verdict_on_every(judge_part, BLOCKED)


def judge_bucket_policy(resource: JudgedResource) -> PolicyVerdict:
    opened = any(is_open_to_all(statement) for statement in readable_statements(resource.properties.get("policy")))
    return fail_because("its policy lets anybody in") if opened else PASS


ROWS: Mapping[str, Judge] = {
    **dict.fromkeys(types_of_part("bucket"), judge_bucket),
    **dict.fromkeys(types_of_part("bucket acl"), judge_acl),
    **dict.fromkeys(types_of_part("public access block"), judge_block),
    **dict.fromkeys(types_with_policy_of("bucket"), judge_bucket_policy),
}

RULE = PolicyRule(
    id="public-bucket",
    level="mandatory",
    asks="No bucket is open to the public.",
    remedy=f"set accessType: {PRIVATE} on OCI, and all four public access blocks on AWS; share single objects through"
    " pre-authenticated requests or URLs that expire",
    types=tuple(ROWS),
    judge=by_type(ROWS),
    passes={
        "OCI's default": JudgedResource(BUCKET, {"name": "vision-training"}),
        "private": JudgedResource(BUCKET, {"accessType": PRIVATE}),
        "AWS's default": JudgedResource(AWS_BUCKET, {"bucket": "vision-dev-training"}),
        "all of it blocked": JudgedResource(BLOCK, dict.fromkeys(BLOCKED, True)),
        "a policy for one account": JudgedResource(
            BUCKET_POLICY,
            {"policy": '{"Statement": [{"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "s3:*"}]}'},
        ),
        "a policy that denies": JudgedResource(
            BUCKET_POLICY, {"policy": {"Statement": {"Effect": "Deny", "Principal": "*", "Action": "s3:*"}}}
        ),
    },
    fails={
        "readable": JudgedResource(BUCKET, {"accessType": "ObjectRead"}),
        "readable by name": JudgedResource(BUCKET, {"accessType": "ObjectReadWithoutList"}),
        "by its list": JudgedResource(BUCKET_ACL, {"acl": "public-read"}),
        "policies not blocked": JudgedResource(BLOCK, {**dict.fromkeys(BLOCKED, True), "blockPublicPolicy": False}),
        "by its policy": JudgedResource(
            BUCKET_POLICY, {"policy": '{"Statement": [{"Effect": "Allow", "Principal": {"AWS": ["*"]}}]}'}
        ),
    },
    unknown={
        "decided elsewhere": JudgedResource(BUCKET, {"accessType": Unknown("accessType")}),
        "a policy that names another resource": JudgedResource(BUCKET_POLICY, {"policy": Unknown("policy")}),
    },
)
