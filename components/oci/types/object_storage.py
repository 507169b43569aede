# SPDX-License-Identifier: Apache-2.0
"""Buckets and objects."""

from components.oci.types.oci_resource_type import oci_type
from components.values.resource_types import (
    COPY_FIRST,
    NO_OLD_VERSIONS,
    KeepsLess,
    LostWith,
    ResourceType,
    input_names,
    inputs_in_reviews,
)

OBJECT_STORAGE_TYPES = (
    oci_type(
        "oci:ObjectStorage/bucket:Bucket", replaced_by="namespace name storageTier",
        computed=(
            "autoTiering bucketScope definedTags freeformTags isBucketKeyEnabled kmsKeyId objectEventsEnabled "
            "retentionRules.retentionRuleId retentionRules.timeCreated retentionRules.timeModified storageTier "
            "versioning"
        ),
        unordered="retentionRules",
        lost=LostWith(
            "the bucket {name} goes with every object in it: checkpoints, results, data. OCI deletes none that is not "
            "empty",
            "keep it (`keep: true`), or name it as `bucket: { existing: {name} }`; copy what is needed with `trainyard "
            "data get`",
            ("name",),
        ),
        create="CreateBucket GetBucket ListRetentionRules", read="GetBucket ListRetentionRules",
        update="UpdateBucket GetBucket ListRetentionRules",
        # A 404 of DeleteBucket counts as deleted only where the read before it failed otherwise.
        delete="GetBucket ListRetentionRules DeleteBucket", changed={},
        unreached={"retention rules": "CreateRetentionRule UpdateRetentionRule DeleteRetentionRule"},
        renamed={"accessType": "publicAccessType", "bucketId": "id"}, defaults={"accessType": "NoPublicAccess"},
        extra="namespace", empty={"bucketScope": "", "retentionRules": []}, named="name",
        existing="bucket: {{ existing: {} }}", behaviour="storage.BucketResource",
        compared="accessType versioning kmsKeyId", judged="accessType", is_listed_in_part=True,
        listed_by="namespace compartmentId", statement_kind="bucket", name_input="name",
        in_reviews=inputs_in_reviews(
            judged="accessType name versioning",
            placed="autoTiering compartmentId kmsKeyId namespace storageTier",
        ),
        keeps_less=(KeepsLess("versioning", NO_OLD_VERSIONS, "keep `versioning`", on="Enabled"),),
        part="bucket",
    ),
    oci_type(
        "oci:ObjectStorage/storageObject:StorageObject", tags="",
        replaced_by=(
            "bucket namespace cacheControl content contentDisposition contentEncoding contentLanguage contentMd5 "
            "contentType metadata source sourceUriDetails"
        ),
        computed="contentMd5 contentType opcSseKmsKeyId storageTier",
        lost=LostWith("the object {name} goes", "a versioned bucket keeps its old version", ("object",)), noun="object",
        model="ObjectSummary",
        # Content from the program is read back as a whole. A file over 50 MiB goes up in parts.
        create="PutObject GetObject", update="GetObject", delete="DeleteObject",
        changed={"object": "RenameObject GetObject"},
        given={
            "source": {"create": "PutObject HeadObject", "read": "HeadObject", "update": "HeadObject"},
            "deleteAllObjectVersions": {"delete": "ListObjectVersions DeleteObject"},
        },
        unreached={"copies of objects": "CopyObject GetWorkRequest"}, stand_in={"create": "HeadObject"},
        behaviour="storage.ObjectResource",
    ),
    ResourceType(
        token="oci:ObjectStorage/preauthrequest:Preauthrequest",
        replaced_by=input_names(
            "accessType bucket bucketListingAction name namespace object objectName timeExpires"
        ),
        computed=input_names("bucketListingAction object objectName"), part="access link",
        in_reviews=inputs_in_reviews(judged="accessType bucket object", placed="name namespace"),
    ),
    ResourceType(
        token="oci:ObjectStorage/objectLifecyclePolicy:ObjectLifecyclePolicy",
        replaced_by=input_names("bucket namespace"),
        in_reviews=inputs_in_reviews(placed="bucket namespace"),
        keeps_less=tuple(
            KeepsLess(
                "rules.timeAmount",
                f"{objects} of the bucket {{of}} older than {{after}} are deleted, which were kept for {{before}}",
                COPY_FIRST, unit="timeUnit", of="bucket",
                only={"action": ("DELETE",), "isEnabled": (True,), "target": targets},
            )
            for objects, targets in (
                ("objects", (None, "objects")), ("old versions of objects", ("previous-object-versions",)),
            )
        ),
        harmless="it only moves and removes objects",
    ),
)  # fmt: skip
