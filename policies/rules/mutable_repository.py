# SPDX-License-Identifier: Apache-2.0
"""If a tag can be pushed again, a run that starts again may run another image."""

from typing import Any

from policies.repositories import REPOSITORIES, is_tag_immutable
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because, verdict_on_every

ECR, OCIR = "aws:ecr/repository:Repository", "oci:Artifacts/containerRepository:ContainerRepository"
# A tag of each way to write versions. One that can be pushed again is not a version of anything.
VERSIONS = ("1.4", "v2", "1.4.12", "2026-11-28", "release-7")


def judge_repository_tags(repository: JudgedResource) -> PolicyVerdict:
    def judge_version(tag: str) -> PolicyVerdict:
        return PASS if is_tag_immutable(tag, repository) else fail_because("a tag can be pushed again")

    return verdict_on_every(judge_version, VERSIONS)


def _but_for(*patterns: Any) -> JudgedResource:
    filters = [{"filter": pattern, "filterType": "WILDCARD"} for pattern in patterns]
    mutability = {"imageTagMutability": "IMMUTABLE_WITH_EXCLUSION", "imageTagMutabilityExclusionFilters": filters}
    return JudgedResource(ECR, mutability)


RULE = PolicyRule(
    id="mutable-repository",
    # Advisory, because a stack may choose it: people try images out under one tag.
    level="advisory",
    asks="A tag of an image means the same image for ever.",
    remedy="set `trainyard:registry: { immutable: true }`, or name images by digest",
    types=REPOSITORIES,
    judge=judge_repository_tags,
    passes={
        "immutable": JudgedResource(OCIR, {"isImmutable": True}),
        "immutable on AWS": JudgedResource(ECR, {"imageTagMutability": "IMMUTABLE"}),
        "immutable but for what is tried out": _but_for("nightly-*", "latest"),
    },
    fails={
        "OCI's default": JudgedResource(OCIR, {}),
        "AWS's default": JudgedResource(ECR, {}),
        "immutable but for everything": _but_for("*"),
        "immutable but for one version's": _but_for("1.*"),
    },
    unknown={
        "decided elsewhere": JudgedResource(OCIR, {"isImmutable": Unknown("isImmutable")}),
        "decided elsewhere on AWS": JudgedResource(ECR, {"imageTagMutability": Unknown("imageTagMutability")}),
        "a pattern decided elsewhere": _but_for(Unknown("filter")),
    },
)
