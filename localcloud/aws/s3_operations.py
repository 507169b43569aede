# SPDX-License-Identifier: Apache-2.0
"""Finds the operation of an S3 request from its method, path and query. For other services, the request names it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from localcloud.aws.aws_errors import Reason, RefusalError
from localcloud.server.http import Request, parameter_pairs

# Sub-resource -> the name of the setting, and the methods that moto supports for it. For other methods moto ignores the
# sub-resource: a request to delete a bucket's metrics would delete the bucket.
_BUCKET_SETTINGS = {
    "accelerate": ("BucketAccelerateConfiguration", "GET PUT"), "acl": ("BucketAcl", "GET PUT"),
    "cors": ("BucketCors", "GET PUT DELETE"), "encryption": ("BucketEncryption", "GET PUT DELETE"),
    "lifecycle": ("BucketLifecycleConfiguration", "GET PUT"), "logging": ("BucketLogging", "GET PUT"),
    "notification": ("BucketNotificationConfiguration", "GET PUT"),
    "object-lock": ("ObjectLockConfiguration", "GET PUT"),
    "ownershipControls": ("BucketOwnershipControls", "GET PUT DELETE"), "policy": ("BucketPolicy", "GET PUT DELETE"),
    "policyStatus": ("BucketPolicyStatus", "GET"), "publicAccessBlock": ("PublicAccessBlock", "GET PUT DELETE"),
    "replication": ("BucketReplication", "GET PUT DELETE"), "requestPayment": ("BucketRequestPayment", "GET"),
    "tagging": ("BucketTagging", "GET PUT DELETE"), "versioning": ("BucketVersioning", "GET PUT"),
    "website": ("BucketWebsite", "GET PUT DELETE"),
}  # fmt: skip
_OBJECT_SETTINGS = {
    "acl": ("ObjectAcl", "GET PUT"), "attributes": ("ObjectAttributes", "GET"),
    "legal-hold": ("ObjectLegalHold", "GET PUT"), "retention": ("ObjectRetention", "PUT"),
    "tagging": ("ObjectTagging", "GET PUT DELETE"),
}  # fmt: skip
_VERBS = {"GET": "Get", "PUT": "Put", "DELETE": "Delete"}


def _setting_operations(settings: Mapping[str, tuple[str, str]]) -> dict[tuple[str, str], str]:
    return {
        (method, name): f"{_VERBS[method]}{setting}"
        for name, (setting, methods) in settings.items()
        for method in methods.split()
    }


# (method, sub-resource in the query) -> operation.
_ON_BUCKET = {
    ("GET", ""): "ListObjects", ("HEAD", ""): "HeadBucket", ("PUT", ""): "CreateBucket", ("DELETE", ""): "DeleteBucket",
    ("GET", "versions"): "ListObjectVersions", ("GET", "uploads"): "ListMultipartUploads",
    ("GET", "location"): "GetBucketLocation", ("DELETE", "lifecycle"): "DeleteBucketLifecycle",
    ("POST", "delete"): "DeleteObjects", **_setting_operations(_BUCKET_SETTINGS),
}  # fmt: skip
_ON_OBJECT = {
    ("GET", ""): "GetObject", ("HEAD", ""): "HeadObject", ("PUT", ""): "PutObject", ("DELETE", ""): "DeleteObject",
    ("POST", "uploads"): "CreateMultipartUpload", ("PUT", "uploadId"): "UploadPart", ("GET", "uploadId"): "ListParts",
    ("POST", "uploadId"): "CompleteMultipartUpload", ("DELETE", "uploadId"): "AbortMultipartUpload",
    **_setting_operations(_OBJECT_SETTINGS),
}  # fmt: skip
# The operation of a request with the header `x-amz-copy-source`.
_COPIES = {"PutObject": "CopyObject", "UploadPart": "UploadPartCopy"}

_SUBRESOURCES = {name for _, name in (*_ON_BUCKET, *_ON_OBJECT) if name}
_PARAMETERS = re.compile(
    "|".join(map(re.escape, sorted(_SUBRESOURCES)))
    + r"|id|x-id|prefix|delimiter|max-keys|marker|start-after|continuation-token|encoding-type|fetch-owner|list-type"
    r"|key-marker|version-id-marker|upload-id-marker|max-uploads|max-parts|part-number-marker|max-buckets|bucket-region"
    r"|versionId|partNumber|response-[a-z-]+|X-Amz-[A-Za-z0-9-]+|x-amz-checksum-mode"
)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_CONTROL = "/v20180820/tags/"
_ON_TAGS = {"GET": "ListTagsForResource", "POST": "TagResource", "DELETE": "UntagResource"}
_MOST_PARAMETERS = 200


def s3_operation_names() -> Iterator[str]:
    """The names of all operations that `identify` can return, without S3 Control."""
    yield from ("ListBuckets", "ListObjectsV2", *_ON_BUCKET.values(), *_ON_OBJECT.values(), *_COPIES.values())


def identify_s3_operation(request: Request) -> tuple[str, Mapping[str, Any]]:
    """The operation, and its bucket, key and query. Refuses a request that another parser could read as another
    operation."""
    path, _, query = request.target.partition("?")
    if is_control(request):
        return _control_operation(request)
    try:
        first, _, rest = path.removeprefix("/").partition("/")
        bucket, key = unquote(first, errors="strict"), unquote(rest, errors="strict")
        pairs = parameter_pairs(query, _MOST_PARAMETERS)
    except ValueError:
        raise RefusalError(Reason.MALFORMED, "The path or the query is not percent-encoded UTF-8") from None
    parameters = dict(pairs)
    if len(parameters) < len(pairs) or sum(name in _SUBRESOURCES for name in parameters) > 1:
        raise RefusalError(Reason.MALFORMED, "The query names more than one operation")
    if (bucket or rest) and not _BUCKET.fullmatch(bucket):
        raise RefusalError(Reason.MALFORMED, "The specified bucket is not valid", "InvalidBucketName")
    operation = _operation_on(request, bucket, key, parameters)
    if not operation or not all(_PARAMETERS.fullmatch(name) for name in parameters):
        raise RefusalError(
            Reason.UNKNOWN_OPERATION, "A header or query you provided implies functionality that is not implemented"
        )
    source, version = _parse_copy_source(request.headers.get("x-amz-copy-source", ""))
    return operation, {**parameters, "Bucket": bucket, "Key": key, "Source": source, "SourceVersion": version}


def is_control(request: Request) -> bool:
    """Whether a request is for S3 Control. It is signed for S3, but has an account in a header."""
    return request.target.startswith(_CONTROL) and "x-amz-account-id" in request.headers


def _control_operation(request: Request) -> tuple[str, Mapping[str, Any]]:
    path, _, query = request.target.partition("?")
    operation = _ON_TAGS.get(request.method, "")
    bucket = unquote(path.removeprefix(_CONTROL)).removeprefix("arn:aws:s3:::")
    try:
        pairs = parameter_pairs(query, _MOST_PARAMETERS)
    except ValueError:
        raise RefusalError(Reason.MALFORMED, "The query is not percent-encoded UTF-8") from None
    if not operation or not _BUCKET.fullmatch(bucket) or {name for name, _ in pairs} - {"tagKeys"}:
        raise RefusalError(Reason.UNKNOWN_OPERATION, "The local AWS has only the tags of buckets in S3 Control")
    keys = [value for _, value in pairs]
    return operation, {"Bucket": bucket, "Key": "", "Source": "", "SourceVersion": "", "tagKeys": keys}


def _parse_copy_source(source: str) -> tuple[str, str]:
    """The source of a copy, as `bucket/key`, and its version."""
    if not source:
        return "", ""
    path, mark, query = source.partition("?")
    name, equals, version = query.partition("=")
    try:
        named, version = unquote(path, errors="strict").removeprefix("/"), unquote(version, errors="strict")
    except ValueError:
        named = ""
    bucket, _, key = named.partition("/")
    whole = not mark or (name == "versionId" and equals and version)
    if not _BUCKET.fullmatch(bucket) or not key or not whole:
        raise RefusalError(Reason.MALFORMED, "The copy source must be a bucket and a key, percent-encoded")
    return named, version


def _operation_on(request: Request, bucket: str, key: str, query: Mapping[str, str]) -> str:
    """The operation; "" if there is none, or moto does not support it."""
    if not bucket:
        return "ListBuckets" if request.method == "GET" else ""
    named = next((name for name in query if name in _SUBRESOURCES), "")
    operation = (_ON_OBJECT if key else _ON_BUCKET).get((request.method, named), "")
    if operation == "ListObjects" and query.get("list-type") == "2":
        return "ListObjectsV2"
    return _COPIES.get(operation, operation) if "x-amz-copy-source" in request.headers else operation
