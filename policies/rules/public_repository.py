# SPDX-License-Identifier: Apache-2.0
"""An image holds code, and often more than its authors remember."""

from policies.rule import JudgedResource, PolicyRule
from policies.verdicts import PASS, PolicyVerdict, Unknown, fail

REPOSITORY = "oci:Artifacts/containerRepository:ContainerRepository"


def judge(resource: JudgedResource) -> PolicyVerdict:
    return fail("anybody can pull its images") if resource.properties.get("isPublic") else PASS


RULE = PolicyRule(
    id="public-repository",
    level="mandatory",
    asks="No image repository is open to the public.",
    remedy="set isPublic: false and let groups pull by a policy statement",
    types=(REPOSITORY,),
    judge=judge,
    passes={
        "OCI's default": JudgedResource(REPOSITORY, {"displayName": "vision/dt"}),
        "private": JudgedResource(REPOSITORY, {"isPublic": False}),
    },
    fails={"public": JudgedResource(REPOSITORY, {"isPublic": True})},
    unknown={"decided elsewhere": JudgedResource(REPOSITORY, {"isPublic": Unknown("isPublic")})},
)
