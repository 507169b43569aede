# SPDX-License-Identifier: Apache-2.0
"""A run may overwrite an earlier checkpoint. Versions bring it back."""

from policies.rule import RequiredValue, value_rule

RULE = value_rule(
    id="unversioned-bucket",
    # Advisory, because a stack may choose it: scratch data needs no versions.
    level="advisory",
    asks="A bucket keeps earlier versions of its objects.",
    remedy="set versioning: Enabled (`trainyard:bucket: { versioning: true }`)",
    because="overwritten and deleted objects are lost",
    where={
        "oci:ObjectStorage/bucket:Bucket": RequiredValue(
            "versioning", "Enabled", {"versioned": "Enabled"}, {"not set": None, "suspended": "Suspended"}
        ),
        "aws:s3/bucketVersioning:BucketVersioning": RequiredValue(
            "versioningConfiguration.status",
            "Enabled",
            {"versioned on AWS": "Enabled"},
            {"suspended on AWS": "Suspended"},
        ),
    },
)
