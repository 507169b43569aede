# SPDX-License-Identifier: Apache-2.0
"""Buckets and objects."""

from components.oci.types.conventions import calls, oci_type
from components.values.resource_types import LostWith, input_names

OBJECT_STORAGE_TYPES = (
    oci_type(
        "oci:ObjectStorage/bucket:Bucket",
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
        create=calls("CreateBucket GetBucket ListRetentionRules"),
        read=calls("GetBucket ListRetentionRules"),
        update=calls("UpdateBucket GetBucket ListRetentionRules"),
        # A 404 of DeleteBucket counts as deleted only where the read before it failed otherwise.
        delete=calls("GetBucket ListRetentionRules DeleteBucket"),
        changed={},
        unreached={"retention rules": calls("CreateRetentionRule UpdateRetentionRule DeleteRetentionRule")},
        renamed={"accessType": "publicAccessType", "bucketId": "id"},
        defaults={"accessType": "NoPublicAccess"},
        extra=frozenset({"namespace"}),
        empty={"bucketScope": "", "retentionRules": []},
        named="name",
        existing="bucket: {{ existing: {} }}",
        behaviour="storage.BucketResource",
    ),
    oci_type(
        "oci:ObjectStorage/storageObject:StorageObject",
        tags="",
        replaced_by=input_names(
            "bucket namespace cacheControl content contentDisposition contentEncoding contentLanguage contentMd5 "
            "contentType metadata source sourceUriDetails"
        ),
        computed=input_names("contentMd5 contentType opcSseKmsKeyId storageTier"),
        lost=LostWith("the object {name} goes", "a versioned bucket keeps its old version", ("object",)),
        noun="object",
        model="ObjectSummary",
        # Content from the program is read back as a whole. A file over 50 MiB goes up in parts.
        create=calls("PutObject GetObject"),
        update=calls("GetObject"),
        delete=calls("DeleteObject"),
        changed={"object": calls("RenameObject GetObject")},
        given={
            "source": {
                "create": calls("PutObject HeadObject"),
                "read": calls("HeadObject"),
                "update": calls("HeadObject"),
            },
            "deleteAllObjectVersions": {"delete": calls("ListObjectVersions DeleteObject")},
        },
        unreached={"copies of objects": calls("CopyObject GetWorkRequest")},
        stand_in={"create": calls("HeadObject")},
        behaviour="storage.ObjectResource",
    ),
)
