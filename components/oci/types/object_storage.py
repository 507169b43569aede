# SPDX-License-Identifier: Apache-2.0
"""Buckets and objects."""

from components.values.resource_types import LostWith, ResourceType, input_names

OBJECT_STORAGE_TYPES = (
    ResourceType(
        token="oci:ObjectStorage/bucket:Bucket",
        tags="freeformTags",
        replaced_by=input_names("namespace name storageTier"),
        computed=input_names(
            "autoTiering bucketScope definedTags freeformTags isBucketKeyEnabled kmsKeyId objectEventsEnabled "
            "retentionRules.retentionRuleId retentionRules.timeCreated retentionRules.timeModified storageTier "
            "versioning"
        ),
        unordered=input_names("retentionRules"),
        lost=LostWith(
            "the bucket {name} goes with every object in it: checkpoints, results, data. OCI deletes none that "
            "is not empty",
            "keep it (`keep: true`), or name it as `bucket: { existing: {name} }`; copy what is needed with "
            "`trainyard data get`",
            ("name",),
        ),
    ),
    ResourceType(
        token="oci:ObjectStorage/storageObject:StorageObject",
        replaced_by=input_names(
            "bucket namespace cacheControl content contentDisposition contentEncoding contentLanguage contentMd5 "
            "contentType metadata source sourceUriDetails"
        ),
        computed=input_names("contentMd5 contentType opcSseKmsKeyId storageTier"),
        lost=LostWith("the object {name} goes", "a versioned bucket keeps its old version", ("object",)),
    ),
)
