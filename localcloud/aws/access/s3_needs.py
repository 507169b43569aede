# SPDX-License-Identifier: Apache-2.0
"""The permissions that calls of S3 need: an action on the bucket or on the object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import parse_qsl

from catalog.tables import table
from components.aws.iam.decide import Need
from localcloud.aws.access import resource_tags
from localcloud.aws.account import ACCOUNT
from localcloud.aws.calls import AwsCall
from localcloud.aws.moto_state import moto_backend

Keys = Mapping[str, Sequence[str]]
_HEADERS = ("x-amz-server-side-encryption", "x-amz-acl")
# With these values, a header has no effect.
_OFF = ("false", "OFF")
# Operations with these endings need another action for an old version.
_HAVE_VERSIONS = ("Object", "Tagging", "Acl", "Attributes")

_ON_KEY = {
    "GetObject": "kms:Decrypt", "UploadPart": "kms:Decrypt", "PutObject": "kms:GenerateDataKey",
    "CopyObject": "kms:GenerateDataKey", "CreateMultipartUpload": "kms:GenerateDataKey",
}  # fmt: skip


def s3_needs(call: AwsCall, common: Keys) -> Iterator[Need]:
    bucket, key = str(call.parameters["Bucket"]), str(call.parameters["Key"])
    names = table("aws_calls")["actions"]["s3"].get(call.operation, [call.operation])
    headers = call.headers
    own: dict[str, Sequence[str]] = {
        f"s3:{name}": (call.text(name),) for name in ("prefix", "delimiter", "max-keys") if name in call.parameters
    }
    own |= {f"s3:{name}": (headers[name],) for name in (*_HEADERS, "if-none-match") if name in headers}
    own |= {f"s3:RequestObjectTag/{name}": (value,) for name, value in object_tags(call)}
    if isinstance(call.document, Mapping) and "Tags" in call.document:  # those of a bucket
        own |= resource_tags.request_keys(dict(map(resource_tags.tag_pair, call.document["Tags"])))
    keys = {**common, **own}
    if not bucket:
        yield from (Need(f"s3:{name}", "*", keys) for name in names)
        return
    if call.operation == "DeleteObjects":
        for row in call.document["Objects"]:
            action = "s3:DeleteObjectVersion" if "VersionId" in row else "s3:DeleteObject"
            yield Need(action, f"arn:aws:s3:::{bucket}/{row['Key']}", keys)
            yield from _header_needs(call, f"arn:aws:s3:::{bucket}/{row['Key']}", keys)
        return
    keyed = [key] if key else []
    of_version = "versionId" in call.parameters and call.operation.endswith(_HAVE_VERSIONS)
    for name in names:
        for one in keyed:
            action = name.replace("Object", "ObjectVersion") if of_version else name
            yield Need(f"s3:{action}", f"arn:aws:s3:::{bucket}/{one}", keys)
        if not keyed:
            yield Need(f"s3:{name}", f"arn:aws:s3:::{bucket}", keys)
    if source := call.text("Source"):
        read = "s3:GetObjectVersion" if call.text("SourceVersion") else "s3:GetObject"
        yield Need(read, f"arn:aws:s3:::{source}", keys)
    yield from encryption_needs(call, bucket, key, keys)
    yield from _header_needs(call, f"arn:aws:s3:::{bucket}/{key}" if key else f"arn:aws:s3:::{bucket}", keys)


def _header_needs(call: AwsCall, resource: str, keys: Keys) -> Iterator[Need]:
    """The needs for headers, such as one with tags for a new object."""
    rows = table("aws_calls")["s3"]["headers"]
    row = rows.get(call.operation, rows["object"])
    needed = (name for header, text in call.headers.items() if text not in _OFF for name in row.get(header, ()))
    yield from (Need(f"s3:{name}", resource, keys) for name in dict.fromkeys(needed))


def object_tags(call: AwsCall) -> list[tuple[str, str]]:
    """The tags that a call gives to an object."""
    if call.operation == "PutObjectTagging":
        return [(str(tag["Key"]), str(tag.get("Value", ""))) for tag in call.document.get("TagSet", [])]
    return parse_qsl(call.headers.get("x-amz-tagging", ""), keep_blank_values=True)


def encryption_needs(call: AwsCall, bucket: str, key: str, keys: Keys) -> Iterator[Need]:
    """The need to use a KMS key when an object is read or written, if the object or its bucket has one."""
    action = _ON_KEY.get(call.operation)
    if action is None:
        return
    named = call.headers.get("x-amz-server-side-encryption-aws-kms-key-id") or _encryption_key(bucket, key, action)
    if named:
        arn = named if named.startswith("arn:") else f"arn:aws:kms:{call.region}:{ACCOUNT}:key/{named}"
        arn = resource_tags.full_arn(arn, call.region)
        yield Need(action, arn, {**keys, **resource_tags.resource_tag_keys(arn)})


def _encryption_key(bucket: str, key: str, action: str) -> str:
    """The KMS key of an object that is read. For a new object: that of its bucket. "" if there is none."""
    bucket_model = moto_backend("s3").buckets.get(bucket)
    existing = bucket_model.keys.get(key) if bucket_model is not None else None
    if existing is not None and action == "kms:Decrypt":
        encrypted = getattr(existing, "encryption", "") == "aws:kms"
        return str(getattr(existing, "kms_key_id", None) or "") if encrypted else ""
    rules = (bucket_model.encryption or {}).get("Rule", []) if bucket_model is not None else []
    for rule in rules if isinstance(rules, list) else [rules]:
        default = rule.get("ApplyServerSideEncryptionByDefault", {})
        if str(default.get("SSEAlgorithm", "")).startswith("aws:kms"):
            return str(default.get("KMSMasterKeyID") or "")
    return ""
