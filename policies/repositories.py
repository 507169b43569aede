# SPDX-License-Identifier: Apache-2.0
"""The stack's repositories of images: whose an image is, and which tags can be pushed again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from components.aws.iam.decide import fits_wildcards
from components.values.resource_types import KeptBy, TypesWith, find_resource_type, types_of_part
from policies.documents import IDENTITY_POLICIES
from policies.rule import JudgedResource, JudgedStack

REPOSITORIES = TypesWith(lambda row: row.immutable_by)

_OWNER_IN_ARN = re.compile(r":ecr:[^:]*:(\d{12}):repository/")


def repository_name(repository: JudgedResource) -> str:
    return str(repository.properties.get("displayName") or repository.properties.get("name"))


def is_in_repository(path: str, repository: JudgedResource, stack: JudgedStack) -> bool:
    """Whether an image is of this repository, by its name without the tag. Anybody may have a repository whose name
    ends alike, in a registry or an account of their own."""
    row = find_resource_type(repository.type)
    host = row.image_host if row else ""
    found = re.fullmatch(rf"(?:{host})/{re.escape(repository_name(repository))}", path)
    if found is None:
        return False
    owners = set(_owners_of(stack))
    return not owners or found["owner"] in owners


def _owners_of(stack: JudgedStack) -> Iterator[str]:
    """Who owns the stack's repositories, as its buckets and its policies about images say. None if nothing says it."""
    for bucket in stack.of_types(types_of_part("bucket")):
        namespace = bucket.properties.get("namespace")
        if isinstance(namespace, str):
            yield namespace
    for policy in stack.of_types(IDENTITY_POLICIES):
        document = policy.properties.get(IDENTITY_POLICIES[policy.type])
        if isinstance(document, str):
            yield from _OWNER_IN_ARN.findall(document)


def is_tag_immutable(tag: str, repository: JudgedResource) -> bool:
    kept: KeptBy = REPOSITORIES[repository.type]
    if repository.properties.get(kept.input) not in kept.values:
        return False
    patterns = [left_out.get("filter") for left_out in repository.properties.get(kept.but_for) or ()]
    return not any(fits_wildcards(str(pattern), tag) for pattern in patterns)
