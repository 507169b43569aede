# SPDX-License-Identifier: Apache-2.0
"""If a tag can be pushed again, a run that starts again may run another image."""

from collections.abc import Callable, Mapping
from typing import Any

from components.values.resource_types import KeptBy
from policies.repositories import REPOSITORIES, is_tag_immutable
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because, verdict_on_every

ECR = "aws:ecr/repository:Repository"
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


def _examples(title: str, properties: Callable[[KeptBy], Mapping[str, Any]]) -> Mapping[str, JudgedResource]:
    """One of each type of repository."""
    return {f"{title} {kept.input}": JudgedResource(token, properties(kept)) for token, kept in REPOSITORIES.items()}


RULE = PolicyRule(
    id="mutable-repository",
    # Advisory, because a stack may choose it: people try images out under one tag.
    level="advisory",
    asks="A tag of an image means the same image for ever.",
    remedy="set `trainyard:registry: { immutable: true }`, or name images by digest",
    types=tuple(REPOSITORIES),
    judge=judge_repository_tags,
    passes={
        **{
            f"immutable by {kept.input}": JudgedResource(token, {kept.input: kept.values[0]})
            for token, kept in REPOSITORIES.items()
        },
        "immutable but for what is tried out": _but_for("nightly-*", "latest"),
    },
    fails={
        **_examples("without", lambda kept: {}),
        "immutable but for everything": _but_for("*"),
        "immutable but for one version's": _but_for("1.*"),
    },
    unknown={
        **_examples("decided elsewhere:", lambda kept: {kept.input: Unknown(kept.input)}),
        "a pattern decided elsewhere": _but_for(Unknown("filter")),
    },
)
