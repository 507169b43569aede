# SPDX-License-Identifier: Apache-2.0
"""Buckets, their settings, and objects. A setting is always put as a whole, and overwrites an existing one."""

from collections.abc import Mapping
from typing import Any

from localcloud.aws.plugin.rows import AwsRow, Change, Read, Tagging, unused_read, words

_BUCKET = {"Bucket": "{id}"}
# The parameters of S3 Control that identify a bucket.
BUCKET_ARN = {"AccountId": "{account}", "ResourceArn": "arn:aws:s3:::{id}"}
# The settings that the real provider reads with a bucket, and S3's error codes for missing ones.
_SETTINGS = {
    "Policy": "NoSuchBucketPolicy",
    "Acl": "",
    "Cors": "NoSuchCORSConfiguration",
    "Website": "NoSuchWebsiteConfiguration",
    "Versioning": "",
    "AccelerateConfiguration": "",
    "RequestPayment": "",
    "Logging": "",
    "LifecycleConfiguration": "NoSuchLifecycleConfiguration",
    "Replication": "ReplicationConfigurationNotFoundError",
    "Encryption": "ServerSideEncryptionConfigurationNotFoundError",
}
_BLOCKS = words("blockPublicAcls blockPublicPolicy ignorePublicAcls restrictPublicBuckets")


def _setting(inputs: str, put: str, get: str, at: str, missing: str, body: str = "", **more: Any) -> AwsRow:
    own = words(inputs)
    return AwsRow(
        **{
            "service": "s3",
            "inputs": ("bucket", *own),
            "create": put,
            "body": body,
            "id": "{bucket}",
            "reads": (Read(get, _BUCKET, at, frozenset({missing})),),
            "delete_with": _BUCKET,
            "changes": (Change(put, own, _BUCKET, body=body, together=True),),
            **more,
        }
    )


ROWS: Mapping[str, AwsRow] = {
    "aws:s3/bucket:Bucket": AwsRow(
        service="s3",
        inputs=words("bucket bucketPrefix forceDestroy objectLockEnabled tags"),
        outputs=words("tagsAll"),
        create="CreateBucket",
        id="{bucket}",
        reads=(
            Read("HeadBucket", _BUCKET, "{bucketRegion: BucketRegion}"),
            *(unused_read(f"GetBucket{name}", _BUCKET, missing) for name, missing in _SETTINGS.items()),
            Read("s3control:ListTagsForResource", BUCKET_ARN, "{Tags: Tags}"),
            Read(
                "GetObjectLockConfiguration",
                _BUCKET,
                "{objectLockEnabled: ObjectLockConfiguration.ObjectLockEnabled == 'Enabled'}",
                frozenset({"ObjectLockConfigurationNotFoundError"}),
            ),
        ),
        delete="DeleteBucket",
        delete_with=_BUCKET,
        named="bucket",
        longest_name=63,
        extra=frozenset({"forceDestroy", "tags"}),
        tagging=Tagging("s3control:TagResource", "s3control:UntagResource", BUCKET_ARN),
        renamed={"objectLockEnabled": "ObjectLockEnabledForBucket"},
        computed={
            "arn": "arn:aws:s3:::{bucket}",
            "bucketDomainName": "{bucket}.s3.amazonaws.com",
            "bucketRegion": "{region}",
            "bucketRegionalDomainName": "{bucket}.s3.{region}.amazonaws.com",
        },
        existing="bucket: {{ existing: {} }}",
        taken_codes=frozenset({"BucketAlreadyExists", "BucketAlreadyOwnedByYou"}),
        behaviour="buckets.BucketResource",
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _setting(
        " ".join(_BLOCKS),
        "PutPublicAccessBlock",
        "GetPublicAccessBlock",
        "PublicAccessBlockConfiguration",
        "NoSuchPublicAccessBlockConfiguration",
        body="PublicAccessBlockConfiguration",
        delete="DeletePublicAccessBlock",
        unset=dict.fromkeys(_BLOCKS, False),
    ),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _setting(
        "rules",
        "PutBucketEncryption",
        "GetBucketEncryption",
        "ServerSideEncryptionConfiguration",
        "ServerSideEncryptionConfigurationNotFoundError",
        body="ServerSideEncryptionConfiguration",
        delete="DeleteBucketEncryption",
    ),
    "aws:s3/bucketVersioning:BucketVersioning": _setting(
        "versioningConfiguration mfa",
        "PutBucketVersioning",
        "GetBucketVersioning",
        "Status && {VersioningConfiguration: {Status: Status, MFADelete: MFADelete}}",
        "",
        delete="PutBucketVersioning",
        delete_with={**_BUCKET, "VersioningConfiguration": {"Status": "Suspended"}},
        behaviour="buckets.VersioningResource",
    ),
    "aws:s3/bucketPolicy:BucketPolicy": _setting(
        "policy",
        "PutBucketPolicy",
        "GetBucketPolicy",
        "{Policy: Policy}",
        "NoSuchBucketPolicy",
        delete="DeleteBucketPolicy",
    ),
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": _setting(
        "rule",
        "PutBucketOwnershipControls",
        "GetBucketOwnershipControls",
        "OwnershipControls",
        "OwnershipControlsNotFoundError",
        body="OwnershipControls",
        delete="DeleteBucketOwnershipControls",
        model_paths={"rule": "Rules[0]"},
    ),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _setting(
        "rules",
        "PutBucketLifecycleConfiguration",
        "GetBucketLifecycleConfiguration",
        "{Rules: Rules}",
        "NoSuchLifecycleConfiguration",
        body="LifecycleConfiguration",
        delete="DeleteBucketLifecycle",
    ),
    "aws:s3/bucketObjectv2:BucketObjectv2": AwsRow(
        service="s3",
        inputs=words(
            "bucket key content contentBase64 source sourceHash etag cacheControl contentDisposition contentEncoding "
            "contentLanguage contentType metadata serverSideEncryption kmsKeyId bucketKeyEnabled storageClass "
            "websiteRedirect checksumAlgorithm forceDestroy tags"
        ),
        outputs=words("versionId checksumCrc32 checksumCrc32c checksumSha1 checksumSha256 tagsAll"),
        create="PutObject",
        id="{bucket}/{key}",
        reads=(
            Read("HeadObject", {"Bucket": "{bucket}", "Key": "{key}"}, "@"),
            Read("GetObjectTagging", {"Bucket": "{bucket}", "Key": "{key}"}, "{Tags: TagSet}"),
        ),
        delete="DeleteObject",
        delete_with={"Bucket": "{bucket}", "Key": "{key}"},
        extra=frozenset({"content", "contentBase64", "source", "sourceHash", "etag", "forceDestroy", "tags"}),
        renamed={"kmsKeyId": "SSEKMSKeyId", "websiteRedirect": "WebsiteRedirectLocation", "etag": "ETag"},
        computed={"arn": "arn:aws:s3:::{bucket}/{key}"},
        behaviour="buckets.ObjectResource",
    ),
}
