# SPDX-License-Identifier: Apache-2.0
"""Buckets, their settings, and objects. A setting is always put as a whole, and overwrites an existing one."""

import re
from typing import Any

from components.aws.types.aws_resource_type import (
    AwsResourceType,
    Change,
    Creation,
    Deletion,
    LiveState,
    Read,
    RealProvider,
    Tagging,
    aws_type,
    unused_read,
)
from components.values.resource_types import (
    COPY_FIRST,
    NO_OLD_VERSIONS,
    KeepsLess,
    LostWith,
    OwnPolicy,
    ResourceType,
    input_names,
    inputs_in_reviews,
)

_BUCKET = {"Bucket": "{id}"}
# The parameters of S3 Control that identify a bucket.
BUCKET_ARN = {"AccountId": "{account}", "ResourceArn": "arn:aws:s3:::{id}"}
_OBJECT = {"Bucket": "{bucket}", "Key": "{key}"}
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
_WORDS = re.compile("[A-Z][a-z]+")
_BLOCKS = "blockPublicAcls blockPublicPolicy ignorePublicAcls restrictPublicBuckets"


def _setting_type(
    name: str, inputs: str, noun: str, at: str, missing: str = "", body: str = "", **fields: Any
) -> AwsResourceType:
    """The calls that put, get and delete it end with `noun`. `at`: the setting in what the second one answers."""
    source = "_".join(word.lower() for word in _WORDS.findall(name))
    calls = {
        "delete": Deletion(f"Delete{noun.removesuffix('Configuration')}", _BUCKET),
        "provider": RealProvider(f"s3/bucket_{source}.go"),
        **fields,
    }
    return aws_type(
        f"aws:s3/bucket{name}:Bucket{name}",
        "s3",
        f"bucket {inputs}",
        replaced_by="bucket",
        create=Creation(f"Put{noun}", "{bucket}", body=body),
        reads=(Read(f"Get{noun}", _BUCKET, at, missing),),
        changes=(Change(f"Put{noun}", tuple(inputs.split()), _BUCKET, body, together=True),),
        **calls,
    )


BUCKETS_TYPES = (
    aws_type(
        "aws:s3/bucket:Bucket", "s3", "bucket bucketPrefix forceDestroy objectLockEnabled tags",
        extra="forceDestroy tags", named="bucket", longest_name=63, unset={"forceDestroy": False},
        renamed={"objectLockEnabled": "ObjectLockEnabledForBucket"},
        computed_outputs={
            "arn": "arn:aws:s3:::{bucket}", "bucketDomainName": "{bucket}.s3.amazonaws.com",
            "bucketRegion": "{region}", "bucketRegionalDomainName": "{bucket}.s3.{region}.amazonaws.com",
        },
        replaced_by="bucket bucketPrefix objectLockEnabled", computed="objectLockEnabled",
        create=Creation("CreateBucket", "{bucket}"),
        reads=(
            Read("HeadBucket", _BUCKET, "{bucketRegion: BucketRegion}"),
            *(unused_read(f"GetBucket{name}", _BUCKET, missing) for name, missing in _SETTINGS.items()),
            # Since 6.23. It falls back to GetBucketTagging only if the refusal says "is not authorized to perform".
            Read("s3control:ListTagsForResource", BUCKET_ARN, "{Tags: Tags}"),
            Read(
                "GetObjectLockConfiguration", _BUCKET,
                "{objectLockEnabled: ObjectLockConfiguration.ObjectLockEnabled == 'Enabled'}",
                "ObjectLockConfigurationNotFoundError",
            ),
        ),
        delete=Deletion("DeleteBucket", _BUCKET),
        tagging=Tagging("s3control:TagResource", "s3control:UntagResource", BUCKET_ARN),
        taken_codes="BucketAlreadyExists BucketAlreadyOwnedByYou", existing="bucket: {{ existing: {} }}",
        behaviour="buckets.BucketResource",
        # In us-east-1 a creation asks first whether the bucket is there, as S3 answers with success there. Since 6.23
        # tags are part of the creation.
        provider=RealProvider(
            "s3/bucket.go", calls={"forceDestroy": "ListObjectVersions DeleteObjects"},
            actions={"tags": "s3:TagResource", "forceDestroy": "s3:DeleteObjectVersion"},
            before={
                "read": "GetBucketTagging", "create": "PutBucketTagging",
                "tags": "GetBucketTagging PutBucketTagging DeleteBucketTagging",
            },
            unreached={
                "settings are resources of their own": "PutBucketAcl PutBucketPolicy DeleteBucketPolicy PutBucketCors "
                "DeleteBucketCors PutBucketWebsite DeleteBucketWebsite PutBucketVersioning "
                "PutBucketAccelerateConfiguration PutBucketRequestPayment PutBucketLogging "
                "PutBucketLifecycleConfiguration DeleteBucketLifecycle PutBucketReplication DeleteBucketReplication "
                "PutBucketEncryption DeleteBucketEncryption PutObjectLockConfiguration",
                "objects under a legal hold, and directory buckets": "PutObjectLegalHold DeleteObject ListObjectsV2",
            },
            stand_in="ListObjectVersions",
        ),
        lost=LostWith(
            "the bucket {name} goes with every object in it: checkpoints, results, data, and the queue of runs",
            "keep it (`keep: true`), or name it as `bucket: { existing: … }`; copy what is needed with `trainyard "
            "data get`",
            ("bucket",),
        ),
        arns={"s3": "arn:aws:s3:::{id} arn:aws:s3:::{id}/key"}, part="bucket",
        live=LiveState(
            what="the bucket {bucket}", tags=Read("GetBucketTagging", _BUCKET, "{Tags: TagSet}", "NoSuchTagSet")
        ),
        in_reviews=inputs_in_reviews(placed="bucket bucketPrefix forceDestroy objectLockEnabled"),
    ),
    _setting_type(
        "PublicAccessBlock", _BLOCKS, "PublicAccessBlock", "PublicAccessBlockConfiguration",
        "NoSuchPublicAccessBlockConfiguration", "PublicAccessBlockConfiguration",
        unset=dict.fromkeys(_BLOCKS.split(), False),
        live=LiveState(_BLOCKS, "the public access of the bucket {bucket}"),
        in_reviews=inputs_in_reviews(judged=_BLOCKS, placed="bucket"), part="public access block",
    ),
    _setting_type(
        "ServerSideEncryptionConfiguration", "rules", "BucketEncryption", "ServerSideEncryptionConfiguration",
        "ServerSideEncryptionConfigurationNotFoundError", "ServerSideEncryptionConfiguration",
        unordered="rules", live=LiveState("rules", "the encryption of the bucket {bucket}"),
        in_reviews=inputs_in_reviews(placed="bucket", initial="rules"),
        harmless="a key grants nobody access to the bucket",
    ),
    _setting_type(
        "Versioning", "versioningConfiguration mfa", "BucketVersioning",
        "Status && {VersioningConfiguration: {Status: Status, MFADelete: MFADelete}}",
        delete=Deletion("PutBucketVersioning", {**_BUCKET, "VersioningConfiguration": {"Status": "Suspended"}}),
        provider=RealProvider("s3/bucket_versioning.go", unreached={"a bucket that never had versions": "HeadBucket"}),
        computed="versioningConfiguration.mfaDelete", behaviour="buckets.VersioningResource",
        in_reviews=inputs_in_reviews(
            judged="versioningConfiguration.status", placed="bucket", initial="versioningConfiguration",
        ),
        keeps_less=(KeepsLess("versioningConfiguration.status", NO_OLD_VERSIONS, "keep `versioning`", on="Enabled"),),
        live=LiveState(
            "versioningConfiguration", "the versions of the bucket {bucket}",
            read=Read("GetBucketVersioning", _BUCKET, "{VersioningConfiguration: {Status: Status || 'Disabled'}}"),
        ),
        harmless="it only keeps old versions",
    ),
    _setting_type(
        "Policy", "policy", "BucketPolicy", "{Policy: Policy}", "NoSuchBucketPolicy",
        own_policy=OwnPolicy("bucket", "bucket", "policy", names_resources=True),
        live=LiveState("policy", "the policy of the bucket {bucket}"),
        in_reviews=inputs_in_reviews(judged="bucket policy"),
    ),
    _setting_type(
        "OwnershipControls", "rule", "BucketOwnershipControls", "OwnershipControls", "OwnershipControlsNotFoundError",
        "OwnershipControls",
        model_paths={"rule": "Rules[0]"},
        live=LiveState(
            "rule", "the owners of objects in the bucket {bucket}",
            read=Read("GetBucketOwnershipControls", _BUCKET, "{rule: OwnershipControls.Rules[0]}"),
        ),
        in_reviews=inputs_in_reviews(placed="bucket", initial="rule"),
    ),
    _setting_type(
        "LifecycleConfiguration", "rules", "BucketLifecycleConfiguration", "{Rules: Rules}",
        "NoSuchLifecycleConfiguration", "LifecycleConfiguration",
        live=LiveState("rules", "the lifecycle rules of the bucket {bucket}"),
        in_reviews=inputs_in_reviews(placed="bucket", initial="rules", in_any_order="rules"),
        keeps_less=tuple(
            KeepsLess(
                f"rules.{days}",
                f"{objects} of the bucket {{of}} older than {{after}} are deleted, which were kept for {{before}}",
                COPY_FIRST, only={"status": ("Enabled",)}, of="bucket",
            )
            for days, objects in (
                ("expiration.days", "objects"),
                ("noncurrentVersionExpiration.noncurrentDays", "old versions of objects"),
            )
        ),
        harmless="it only moves and removes objects",
    ),
    aws_type(
        "aws:s3/bucketObjectv2:BucketObjectv2", "s3",
        "bucket key content contentBase64 source sourceHash etag cacheControl contentDisposition contentEncoding "
        "contentLanguage contentType metadata serverSideEncryption kmsKeyId bucketKeyEnabled storageClass "
        "websiteRedirect checksumAlgorithm forceDestroy tags",
        "versionId checksumCrc32 checksumCrc32c checksumSha1 checksumSha256",
        extra="content contentBase64 source sourceHash etag forceDestroy tags",
        renamed={"kmsKeyId": "SSEKMSKeyId", "websiteRedirect": "WebsiteRedirectLocation", "etag": "ETag"},
        computed_outputs={"arn": "arn:aws:s3:::{bucket}/{key}"},
        replaced_by="bucket key",
        computed="bucketKeyEnabled contentType etag kmsKeyId serverSideEncryption storageClass", tags="",
        create=Creation("PutObject", "{bucket}/{key}"),
        reads=(Read("HeadObject", _OBJECT), Read("GetObjectTagging", _OBJECT, "{Tags: TagSet}")),
        delete=Deletion("DeleteObject", _OBJECT), behaviour="buckets.ObjectResource",
        # A file of more than 5 MiB is put in parts. Tags at the creation are in a header, which needs the same right.
        # S3 says that an object is not there only to who may list the bucket. In a bucket with versions an object's
        # are listed, and deleted one by one.
        provider=RealProvider(
            "s3/object.go",
            calls={
                "content": "PutObject", "contentBase64": "PutObject", "source": "PutObject",
                "tags": "PutObjectTagging", "noTags": "DeleteObjectTagging", "versions": "ListObjectVersions",
            },
            actions={"read": "s3:ListBucket", "versions": "s3:DeleteObjectVersion"},
            unreached={
                "locks and lists of access": "PutObjectAcl PutObjectLegalHold PutObjectRetention",
                "objects are deleted one by one, and buckets by their own type": "DeleteObjects DeleteBucket "
                "ListObjectsV2 HeadBucket",
            },
        ),
        lost=LostWith("the object {name} goes", "a versioned bucket keeps its old version", ("key",)),
        in_reviews=inputs_in_reviews(planned="key source", placed="bucket contentType"),
    ),
    # A bucket, and its list, by the names that they had before.
    ResourceType(
        token="aws:s3/bucketV2:BucketV2", replaced_by=input_names("bucket bucketPrefix"), tags="tags", part="bucket",
    ),
    *(
        ResourceType(
            token=token, replaced_by=input_names("bucket expectedBucketOwner"),
            computed=input_names("accessControlPolicy"), part="bucket acl",
        )
        for token in ("aws:s3/bucketAcl:BucketAcl", "aws:s3/bucketAclV2:BucketAclV2")
    ),
)  # fmt: skip
