# SPDX-License-Identifier: Apache-2.0
"""Training data and results are nobody else's to read."""

from policies.rule import Resource, Rule
from policies.verdicts import PASS, Unknown, Verdict, fail

BUCKET = "oci:ObjectStorage/bucket:Bucket"
PRIVATE = "NoPublicAccess"


def judge(resource: Resource) -> Verdict:
    access = resource.properties.get("accessType") or PRIVATE
    return PASS if access == PRIVATE else fail(f"accessType {access} lets anybody read objects")


RULE = Rule(
    id="public-bucket",
    level="mandatory",
    asks="No bucket is open to the public.",
    remedy=f"set accessType: {PRIVATE}; hand out single objects by pre-authenticated requests that end",
    types=(BUCKET,),
    judge=judge,
    passes={
        "OCI's default": Resource(BUCKET, {"name": "vision-training"}),
        "private": Resource(BUCKET, {"accessType": PRIVATE}),
    },
    fails={
        "readable": Resource(BUCKET, {"accessType": "ObjectRead"}),
        "readable by name": Resource(BUCKET, {"accessType": "ObjectReadWithoutList"}),
    },
    unknown={"decided elsewhere": Resource(BUCKET, {"accessType": Unknown("accessType")})},
)
