# SPDX-License-Identifier: Apache-2.0
"""Only the team may read its training data and results."""

from policies.rule import JudgedResource, PolicyRule
from policies.verdicts import PASS, PolicyVerdict, Unknown, fail

BUCKET = "oci:ObjectStorage/bucket:Bucket"
PRIVATE = "NoPublicAccess"


def judge(resource: JudgedResource) -> PolicyVerdict:
    access = resource.properties.get("accessType") or PRIVATE
    return PASS if access == PRIVATE else fail(f"accessType {access} lets anybody read objects")


RULE = PolicyRule(
    id="public-bucket",
    level="mandatory",
    asks="No bucket is open to the public.",
    remedy=f"set accessType: {PRIVATE}; share single objects through pre-authenticated requests that expire",
    types=(BUCKET,),
    judge=judge,
    passes={
        "OCI's default": JudgedResource(BUCKET, {"name": "vision-training"}),
        "private": JudgedResource(BUCKET, {"accessType": PRIVATE}),
    },
    fails={
        "readable": JudgedResource(BUCKET, {"accessType": "ObjectRead"}),
        "readable by name": JudgedResource(BUCKET, {"accessType": "ObjectReadWithoutList"}),
    },
    unknown={"decided elsewhere": JudgedResource(BUCKET, {"accessType": Unknown("accessType")})},
)
