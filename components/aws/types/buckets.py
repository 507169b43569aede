# SPDX-License-Identifier: Apache-2.0
"""Buckets, what is set for them, and objects."""

from components.values.resource_types import LostWith, ResourceType, input_names

BUCKETS_TYPES = (
    ResourceType(
        token="aws:s3/bucket:Bucket",
        tags="tags",
        replaced_by=input_names("bucket bucketPrefix objectLockEnabled"),
        computed=input_names("objectLockEnabled"),
        lost=LostWith(
            "the bucket {name} goes with every object in it: checkpoints, results, data, and the queue of runs",
            "keep it (`keep: true`), or name it as `bucket: { existing: … }`; copy what is needed with "
            "`trainyard data get`",
            ("bucket",),
        ),
    ),
    ResourceType(
        token="aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
        replaced_by=input_names("bucket"),
    ),
    ResourceType(
        token="aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
        replaced_by=input_names("bucket"),
        unordered=input_names("rules"),
    ),
    ResourceType(
        token="aws:s3/bucketVersioning:BucketVersioning",
        replaced_by=input_names("bucket"),
        computed=input_names("versioningConfiguration.mfaDelete"),
    ),
    ResourceType(
        token="aws:s3/bucketPolicy:BucketPolicy",
        replaced_by=input_names("bucket"),
    ),
    ResourceType(
        token="aws:s3/bucketOwnershipControls:BucketOwnershipControls",
        replaced_by=input_names("bucket"),
    ),
    ResourceType(
        token="aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
        replaced_by=input_names("bucket"),
    ),
    ResourceType(
        token="aws:s3/bucketObjectv2:BucketObjectv2",
        replaced_by=input_names("bucket key"),
        computed=input_names("bucketKeyEnabled contentType etag kmsKeyId serverSideEncryption storageClass"),
        lost=LostWith("the object {name} goes", "a versioned bucket keeps its old version", ("key",)),
    ),
)
