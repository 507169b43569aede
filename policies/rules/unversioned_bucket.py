# SPDX-License-Identifier: Apache-2.0
"""A run may overwrite an earlier checkpoint. Versions bring it back."""

from policies.rule import JudgedResource, PolicyRule
from policies.verdicts import PASS, PolicyVerdict, Unknown, fail

BUCKET = "oci:ObjectStorage/bucket:Bucket"
KEEPS_VERSIONS = "Enabled"


def judge(resource: JudgedResource) -> PolicyVerdict:
    if resource.properties.get("versioning") == KEEPS_VERSIONS:
        return PASS
    return fail("overwritten and deleted objects are lost")


RULE = PolicyRule(
    id="unversioned-bucket",
    # Advisory, because a stack may choose it: scratch data needs no versions.
    level="advisory",
    asks="A bucket keeps earlier versions of its objects.",
    remedy=f"set versioning: {KEEPS_VERSIONS} (`trainyard:bucket: {{ versioning: true }}`)",
    types=(BUCKET,),
    judge=judge,
    passes={"versioned": JudgedResource(BUCKET, {"versioning": KEEPS_VERSIONS})},
    fails={
        "not set": JudgedResource(BUCKET, {"name": "vision-training"}),
        "suspended": JudgedResource(BUCKET, {"versioning": "Suspended"}),
    },
    unknown={"decided elsewhere": JudgedResource(BUCKET, {"versioning": Unknown("versioning")})},
)
