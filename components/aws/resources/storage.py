# SPDX-License-Identifier: Apache-2.0
"""Resources with data: the bucket, the image repository and the log group.

Bucket and repository are protected, and survive the stack, unless its file says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from catalog.tables import table
from components.aws.resources.context import AwsComponent
from components.plan.model import BucketPlan, LogsPlan, RegistryPlan

# The value in the stack file -> S3's value. S3 cannot turn versioning off again, only suspend it.
VERSIONING: Mapping[bool | str, str] = {True: "Enabled", False: "Suspended", "suspended": "Suspended"}


@dataclass(frozen=True)
class StorageArgs:
    bucket: BucketPlan
    registry: RegistryPlan
    logs: LogsPlan
    tags: Mapping[str, str]
    # Names of the jobs' folders in the bucket.
    jobs: Sequence[str]


class Storage(AwsComponent):
    """The bucket, repository and log group that a stack makes."""

    def __init__(self, name: str, args: StorageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Storage", name, args.tags, opts)
        self._jobs = args.jobs
        if args.bucket.create:
            self._bucket(args.bucket)
        if args.registry.create:
            self._repository(args.registry)
        if args.logs.enabled and args.logs.create:
            named = {"name": args.logs.group_name, "retention_in_days": args.logs.retention_days}
            self._make(aws.cloudwatch.LogGroup, "log-group", **named)
        self.register_outputs({})

    def _kept(self, keep: bool) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, protect=keep, retain_on_delete=keep)

    def _bucket(self, plan: BucketPlan) -> None:
        named = {"bucket": plan.name, "force_destroy": not plan.keep}
        bucket = self._make(aws.s3.Bucket, "bucket", self._kept(plan.keep), **named).bucket
        # Settings are separate resources. If the bucket is kept, so are they: deleting them would make it public.
        kept = pulumi.ResourceOptions(parent=self, retain_on_delete=plan.keep)
        blocks = ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets")
        private = aws.s3.BucketPublicAccessBlock("bucket", bucket=bucket, opts=kept, **dict.fromkeys(blocks, True))
        # S3 refuses simultaneous changes of a bucket's policy and its public access.
        after = pulumi.ResourceOptions.merge(kept, pulumi.ResourceOptions(depends_on=[private]))
        aws.s3.BucketPolicy("bucket", bucket=bucket, policy=bucket.apply(only_encrypted_calls), opts=after)
        owner = {"object_ownership": "BucketOwnerEnforced"}
        aws.s3.BucketOwnershipControls("bucket", bucket=bucket, rule=owner, opts=kept)
        encryption: dict[str, object] = {"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}
        if plan.key is not None:
            by_key = {"sse_algorithm": "aws:kms", "kms_master_key_id": plan.key}
            encryption = {"apply_server_side_encryption_by_default": by_key, "bucket_key_enabled": True}
        aws.s3.BucketServerSideEncryptionConfiguration("bucket", bucket=bucket, rules=[encryption], opts=kept)
        endings: list[dict[str, object]] = [_UNFINISHED]
        for row in table("aws_dl1")["old_versions"]:
            for prefix in dict.fromkeys(row["prefix"].format(job=job) for job in self._jobs):
                ending: dict[str, object] = {
                    "id": f"old-versions:{prefix}",
                    "status": "Enabled",
                    "filter": {"prefix": prefix},
                    "noncurrent_version_expiration": {"noncurrent_days": row["days"]},
                    # In the end, a removed object is only a delete marker, which is removed, too.
                    "expiration": {"expired_object_delete_marker": True},
                }
                endings.append(ending)
        aws.s3.BucketLifecycleConfiguration("bucket", bucket=bucket, rules=endings, opts=kept)
        status = {"status": VERSIONING[plan.versioning]}
        aws.s3.BucketVersioning("bucket", bucket=bucket, versioning_configuration=status, opts=kept)

    def _repository(self, plan: RegistryPlan) -> None:
        named = {"name": plan.repository, "force_delete": not plan.keep}
        mutability = "IMMUTABLE" if plan.immutable else "MUTABLE"
        scans = {"image_tag_mutability": mutability, "image_scanning_configuration": {"scan_on_push": True}}
        self._make(aws.ecr.Repository, "repository", self._kept(plan.keep), **named, **scans)


# Parts of unfinished uploads cost money, and no list of objects shows them.
_UNFINISHED: dict[str, object] = {
    "id": "unfinished-uploads",
    "status": "Enabled",
    "filter": {"prefix": ""},
    "abort_incomplete_multipart_upload": {"days_after_initiation": 7},
}


def only_encrypted_calls(bucket: str) -> str:
    """The policy that refuses every call without TLS."""
    statement = {
        "Sid": "OnlyOverTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]}, sort_keys=True)
