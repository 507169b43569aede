# SPDX-License-Identifier: Apache-2.0
"""An image carries code and often more than its authors remember."""

from policies.rule import Resource, Rule
from policies.verdicts import PASS, Unknown, Verdict, fail

REPOSITORY = "oci:Artifacts/containerRepository:ContainerRepository"


def judge(resource: Resource) -> Verdict:
    return fail("anybody can pull its images") if resource.properties.get("isPublic") else PASS


RULE = Rule(
    id="public-repository",
    level="mandatory",
    asks="No image repository is open to the public.",
    remedy="set isPublic: false and let groups pull by a policy statement",
    types=(REPOSITORY,),
    judge=judge,
    passes={
        "OCI's default": Resource(REPOSITORY, {"displayName": "vision/dt"}),
        "private": Resource(REPOSITORY, {"isPublic": False}),
    },
    fails={"public": Resource(REPOSITORY, {"isPublic": True})},
    unknown={"decided elsewhere": Resource(REPOSITORY, {"isPublic": Unknown("isPublic")})},
)
