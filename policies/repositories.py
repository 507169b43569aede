# SPDX-License-Identifier: Apache-2.0
"""The stack's repositories of images: whose an image is, and which tags can be pushed again."""

from __future__ import annotations

import re

from components.aws.iam.decide import fits_wildcards
from components.values.resource_types import KeptBy, all_resource_types
from policies.rule import JudgedResource

REPOSITORIES = {token: row.immutable_by for token, row in all_resource_types().items() if row.immutable_by}


def repository_name(repository: JudgedResource) -> str:
    return str(repository.properties.get("displayName") or repository.properties.get("name"))


def is_in_repository(path: str, repository: JudgedResource) -> bool:
    """Whether an image is of this repository, by its name without the tag. Anybody has a repository whose name ends
    alike, in a registry of their own."""
    host = all_resource_types()[repository.type].image_host
    return re.fullmatch(rf"(?:{host})/{re.escape(repository_name(repository))}", path) is not None


def is_tag_immutable(tag: str, repository: JudgedResource) -> bool:
    kept: KeptBy = REPOSITORIES[repository.type]
    if repository.properties.get(kept.input) not in kept.values:
        return False
    patterns = [left_out.get("filter") for left_out in repository.properties.get(kept.but_for) or ()]
    return not any(fits_wildcards(str(pattern), tag) for pattern in patterns)
