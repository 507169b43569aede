# SPDX-License-Identifier: Apache-2.0
"""A run may overwrite an earlier checkpoint. Versions bring it back."""

from collections.abc import Mapping
from typing import Any

from policies.rule import PASS, Judge, JudgedResource, PolicyRule, PolicyVerdict, Unknown, by_type, fail

BUCKET = "oci:ObjectStorage/bucket:Bucket"
VERSIONING = "aws:s3/bucketVersioning:BucketVersioning"
KEEPS_VERSIONS = "Enabled"


def judge_bucket(resource: JudgedResource) -> PolicyVerdict:
    return judge_state(resource.properties.get("versioning"))


def judge_versioning(resource: JudgedResource) -> PolicyVerdict:
    return judge_state((resource.properties.get("versioningConfiguration") or {}).get("status"))


def judge_state(state: Any) -> PolicyVerdict:
    return PASS if state == KEEPS_VERSIONS else fail("overwritten and deleted objects are lost")


ROWS: Mapping[str, Judge] = {BUCKET: judge_bucket, VERSIONING: judge_versioning}


RULE = PolicyRule(
    id="unversioned-bucket",
    # Advisory, because a stack may choose it: scratch data needs no versions.
    level="advisory",
    asks="A bucket keeps earlier versions of its objects.",
    remedy=f"set versioning: {KEEPS_VERSIONS} (`trainyard:bucket: {{ versioning: true }}`)",
    types=tuple(ROWS),
    judge=by_type(ROWS),
    passes={
        "versioned": JudgedResource(BUCKET, {"versioning": KEEPS_VERSIONS}),
        "versioned on AWS": JudgedResource(VERSIONING, {"versioningConfiguration": {"status": KEEPS_VERSIONS}}),
    },
    fails={
        "not set": JudgedResource(BUCKET, {"name": "vision-training"}),
        "suspended": JudgedResource(BUCKET, {"versioning": "Suspended"}),
        "suspended on AWS": JudgedResource(VERSIONING, {"versioningConfiguration": {"status": "Suspended"}}),
    },
    unknown={"decided elsewhere": JudgedResource(BUCKET, {"versioning": Unknown("versioning")})},
)
