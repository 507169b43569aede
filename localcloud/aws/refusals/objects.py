# SPDX-License-Identifier: Apache-2.0
"""S3's refusals: missing objects if the caller may not list the bucket, public policies, ACLs, and disabled keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.tables import table
from components.aws.iam.decide import AwsPrincipal, Need, decide_aws_call
from localcloud.aws.access import s3_needs
from localcloud.aws.access.needs import common_keys
from localcloud.aws.access.policies import in_force
from localcloud.aws.additions.buckets import default_encryption
from localcloud.aws.aws_errors import aws_refusal, denied_access
from localcloud.aws.calls import AwsCall
from localcloud.aws.moto_state import moto_backend

# With one of these headers, a copy of an object to itself changes something.
_COPY_CHANGES = frozenset({
    "x-amz-storage-class", "x-amz-website-redirect-location", "x-amz-server-side-encryption",
    "x-amz-server-side-encryption-customer-algorithm", "x-amz-checksum-algorithm",
})  # fmt: skip
_OF_THE_OWNER = "bucket-owner-full-control"
# With one of these condition keys, a statement for everybody does not count as public in S3.
_FIXED_KEYS = frozenset({
    "aws:sourceip", "aws:sourcearn", "aws:sourcevpc", "aws:sourcevpce", "aws:sourceowner", "aws:sourceaccount",
    "aws:principalorgid", "aws:principalorgpaths", "aws:principalaccount", "aws:principalarn", "aws:userid",
    "s3:dataaccesspointarn", "s3:dataaccesspointaccount", "s3:x-amz-server-side-encryption-aws-kms-key-id",
})  # fmt: skip


def refuse_s3_call(call: AwsCall, caller: AwsPrincipal) -> None:
    """Refuses a call of S3 by S3's rules."""
    name = call.text("Bucket")
    if call.operation == "CreateBucket" and not re.fullmatch(table("aws_dl1")["names"]["bucket"], name):
        raise aws_refusal("bucket name")
    bucket = moto_backend("s3").buckets.get(name)
    if bucket is None:
        return
    reads = call.operation in ("GetObject", "HeadObject") and not call.text("versionId")
    if reads and bucket.keys.get(call.text("Key")) is None:
        # Only callers who may list the bucket may learn that an object does not exist.
        need = Need("s3:ListBucket", f"arn:aws:s3:::{bucket.name}", common_keys(call, caller))
        decision = decide_aws_call(need, caller, in_force(caller, need))
        if not decision.allowed:
            raise denied_access(caller.arn, need.action, need.resource, decision.why)
    block = bucket.public_access_block if call.operation == "PutBucketPolicy" else None
    if block is not None and block.block_public_policy and any(_public_statements(call.body.decode())):
        why = "because public policies are prevented by the BlockPublicPolicy setting in S3 Block Public Access."
        raise denied_access(caller.arn, "s3:PutBucketPolicy", f"arn:aws:s3:::{bucket.name}", why)
    # In a bucket whose owner owns all objects, which is the default, there are no ACLs.
    named = call.headers.get("x-amz-acl", _OF_THE_OWNER)
    asks = call.operation in ("PutObjectAcl", "PutBucketAcl") or named != _OF_THE_OWNER
    if bucket.ownership_rule == "BucketOwnerEnforced" and asks:
        raise aws_refusal("acl")
    for need in s3_needs.encryption_needs(call, call.text("Bucket"), call.text("Key"), {}):
        refuse_unusable_key(need.resource, "KMS.")
    if call.operation == "CompleteMultipartUpload":
        numbers = [int(part["PartNumber"]) for part in call.document.get("Parts", [])]
        if numbers != sorted(set(numbers)):
            raise aws_refusal("part order")
    itself = call.operation == "CopyObject" and call.text("Source") == f"{bucket.name}/{call.text('Key')}"
    encrypts = bucket.encryption != default_encryption() or not _COPY_CHANGES.isdisjoint(call.headers)
    replaces = call.headers.get("x-amz-metadata-directive") == "REPLACE" or call.text("SourceVersion")
    if itself and not encrypts and not replaces:
        raise aws_refusal("copy to itself")


def refuse_unusable_key(arn: str, prefix: str = "") -> None:
    """Refuses a key of KMS that does not exist or is not enabled. `prefix`: of the codes with which S3 says so."""
    _, _, _, region, _, name = arn.split(":", 5)
    backend = moto_backend("kms", region)
    key = backend.keys.get(backend.any_id_to_key_id(name.removeprefix("key/")))
    if key is None:
        raise aws_refusal("key unknown", prefix=prefix, arn=arn)
    if key.key_state == "Disabled":
        raise aws_refusal("key disabled", prefix=prefix, arn=key.arn)
    if key.key_state != "Enabled":
        raise aws_refusal("key deleted", prefix=prefix, arn=key.arn)


def _public_statements(policy: str) -> Iterator[Mapping[str, Any]]:
    """The statements that allow everybody something, without a condition on a fixed value. The policy must be valid."""
    statements = json.loads(policy)["Statement"]
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal", "*")
        names = principal.get("AWS", []) if isinstance(principal, dict) else principal
        everybody = "*" in (names if isinstance(names, list) else [names])
        keys = {key.lower() for keys in statement.get("Condition", {}).values() for key in keys}
        if statement["Effect"] == "Allow" and everybody and not keys & _FIXED_KEYS:
            yield statement


def refuse_foreign_uploads(call: AwsCall) -> None:
    """Refuses a call for an upload of another bucket or key. Access was checked only for those in the call."""
    if "uploadId" not in call.parameters:
        return
    bucket = moto_backend("s3").buckets.get(call.text("Bucket"))
    if bucket is None:
        return
    upload, key = bucket.multiparts.get(call.text("uploadId")), call.text("Key")
    if upload is not None and upload.key_name == key:
        return
    # CompleteMultipartUpload is idempotent.
    made = getattr(bucket.keys.get(key), "multipart", None)
    if call.operation == "CompleteMultipartUpload" and made is not None and made.id == call.text("uploadId"):
        return
    raise aws_refusal("upload")
