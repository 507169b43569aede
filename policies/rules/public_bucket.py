# SPDX-License-Identifier: Apache-2.0
"""Only the team may read its training data and results."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from components.values.resource_types import Part, ResourceType, TypesWith
from policies.documents import has_policy_of, readable_statements
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
from policies.strangers import lets_strangers_in

BUCKET = "oci:ObjectStorage/bucket:Bucket"
PRIVATE = "NoPublicAccess"
AWS_BUCKET = "aws:s3/bucket:Bucket"
BUCKET_ACL = "aws:s3/bucketAcl:BucketAcl"
BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
LINK = "oci:ObjectStorage/preauthrequest:Preauthrequest"
BUCKET_POLICY = "aws:s3/bucketPolicy:BucketPolicy"
BLOCKED = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
OPEN_ACLS = ("public-read", "public-read-write", "authenticated-read")
# Groups of everybody, and of everybody with an account of AWS, at the end of their URIs.
OPEN_GROUPS = ("/global/AllUsers", "/global/AuthenticatedUsers")
ACCESS_POINT = "aws:s3/accessPoint:AccessPoint"
# Objects, with lists of their own.
OBJECTS = ("aws:s3/bucketObject:BucketObject", "aws:s3/bucketObjectv2:BucketObjectv2", "aws:s3/objectCopy:ObjectCopy")


def judge_bucket(resource: JudgedResource) -> PolicyVerdict:
    """By the access type that OCI has, or the list that AWS has."""
    access = resource.properties.get("accessType") or PRIVATE
    return judge_acl(resource) if access == PRIVATE else fail_because(f"accessType {access} lets anybody read objects")


def judge_acl(resource: JudgedResource) -> PolicyVerdict:
    acl = resource.properties.get("acl")
    if acl in OPEN_ACLS:
        return fail_because(f"acl {acl} lets anybody read objects")
    given = [*(resource.properties.get("grants") or ())]
    given += [
        grant.get("grantee") or {}
        for grant in (resource.properties.get("accessControlPolicy") or {}).get("grants") or ()
    ]

    def judge_grant(grant: Mapping[str, Any]) -> PolicyVerdict:
        uri = str(grant.get("uri") or "")
        return fail_because(f"its list grants something to {uri}") if uri.endswith(OPEN_GROUPS) else PASS

    return verdict_on_every(judge_grant, given)


def judge_block(resource: JudgedResource) -> PolicyVerdict:
    def judge_part(part: str) -> PolicyVerdict:
        return PASS if resource.properties.get(part) else fail_because(f"{part} is not set")

    return verdict_on_every(judge_part, BLOCKED)


def judge_access_point(resource: JudgedResource) -> PolicyVerdict:
    """All of it is blocked, unless the access point says otherwise."""
    given = resource.properties.get("publicAccessBlockConfiguration")
    block = {**dict.fromkeys(BLOCKED, True), **({} if given is None else given)}
    blocked = judge_block(replace(resource, properties=block))
    return blocked if blocked.outcome == "fail" else judge_bucket_policy(resource)


def judge_link(resource: JudgedResource) -> PolicyVerdict:
    access = str(resource.properties.get("accessType"))
    return fail_because(f"{access} lets whoever has the link into the whole bucket") if "Any" in access else PASS


def judge_bucket_policy(resource: JudgedResource) -> PolicyVerdict:
    opened = any(map(lets_strangers_in, readable_statements(resource.properties.get("policy"))))
    return fail_because("its policy lets anybody in") if opened else PASS


OF_PARTS: Mapping[Part | None, Judge] = {
    "bucket": judge_bucket, "bucket acl": judge_acl, "public access block": judge_block, "access link": judge_link,
}  # fmt: skip


def judge_of_type(row: ResourceType) -> Judge | None:
    return judge_bucket_policy if has_policy_of(row, "bucket", "access point") else OF_PARTS.get(row.part)


ROWS: Mapping[str, Judge] = TypesWith(
    judge_of_type, {**dict.fromkeys(OBJECTS, judge_acl), ACCESS_POINT: judge_access_point}
)

RULE = PolicyRule(
    id="public-bucket",
    level="mandatory",
    asks="No bucket is open to the public.",
    remedy=f"set accessType: {PRIVATE} on OCI, and all four public access blocks on AWS; share single objects through"
    " pre-authenticated requests or URLs that expire",
    types=ROWS,
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
        "an access point": JudgedResource(ACCESS_POINT, {"bucket": "vision-dev-training"}),
        "a link to one object": JudgedResource(LINK, {"accessType": "ObjectRead", "objectName": "model.pt"}),
        "a policy for the office": JudgedResource(
            BUCKET_POLICY,
            {
                "policy": '{"Statement": {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Condition":'
                ' {"IpAddress": {"aws:SourceIp": "203.0.113.0/24"}}}}'
            },
        ),
        "a policy that denies": JudgedResource(
            BUCKET_POLICY, {"policy": {"Statement": {"Effect": "Deny", "Principal": "*", "Action": "s3:*"}}}
        ),
    },
    fails={
        "readable": JudgedResource(BUCKET, {"accessType": "ObjectRead"}),
        "readable by name": JudgedResource(BUCKET, {"accessType": "ObjectReadWithoutList"}),
        "whoever meets what anybody meets": JudgedResource(
            BUCKET_POLICY,
            {
                "policy": '{"Statement": {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Condition":'
                ' {"IpAddress": {"aws:SourceIp": "0.0.0.0/0"}}}}'
            },
        ),
        "by a group in its list": JudgedResource(
            BUCKET_ACL,
            {
                "accessControlPolicy": {
                    "grants": [{"grantee": {"uri": "http://acs.amazonaws.com/groups/global/AllUsers"}}]
                }
            },
        ),
        "by an access point": JudgedResource(
            ACCESS_POINT, {"publicAccessBlockConfiguration": {"blockPublicPolicy": False}}
        ),
        "by a link to all of it": JudgedResource(LINK, {"bucket": "vision", "accessType": "AnyObjectRead"}),
        "by its list": JudgedResource(BUCKET_ACL, {"acl": "public-read"}),
        "policies not blocked": JudgedResource(BLOCK, {**dict.fromkeys(BLOCKED, True), "blockPublicPolicy": False}),
        "by its policy": JudgedResource(
            BUCKET_POLICY, {"policy": '{"Statement": [{"Effect": "Allow", "Principal": {"AWS": ["*"]}}]}'}
        ),
    },
    unknown={
        "grants decided elsewhere": JudgedResource(BUCKET_ACL, {"accessControlPolicy": Unknown("accessControlPolicy")}),
        "decided elsewhere": JudgedResource(BUCKET, {"accessType": Unknown("accessType")}),
        "a policy that names another resource": JudgedResource(BUCKET_POLICY, {"policy": Unknown("policy")}),
    },
)
