# SPDX-License-Identifier: Apache-2.0
"""A run that writes over an earlier checkpoint should not be the end of it."""

from policies.rule import Resource, Rule
from policies.verdicts import PASS, Unknown, Verdict, fail

BUCKET = "oci:ObjectStorage/bucket:Bucket"
KEEPS_VERSIONS = "Enabled"


def judge(resource: Resource) -> Verdict:
    if resource.properties.get("versioning") == KEEPS_VERSIONS:
        return PASS
    return fail("what is written over or deleted is gone")


RULE = Rule(
    id="unversioned-bucket",
    # A stack may choose it: scratch data is not worth its versions.
    level="advisory",
    asks="A bucket keeps earlier versions of its objects.",
    remedy=f"set versioning: {KEEPS_VERSIONS} (`trainyard:bucket: {{ versioning: true }}`)",
    types=(BUCKET,),
    judge=judge,
    passes={"versioned": Resource(BUCKET, {"versioning": KEEPS_VERSIONS})},
    fails={
        "nothing said": Resource(BUCKET, {"name": "vision-training"}),
        "suspended": Resource(BUCKET, {"versioning": "Suspended"}),
    },
    unknown={"decided elsewhere": Resource(BUCKET, {"versioning": Unknown("versioning")})},
)
