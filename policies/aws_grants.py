# SPDX-License-Identifier: Apache-2.0
"""What the actions and ARNs in a statement of AWS cover, asked with names that nobody meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from components.aws.iam.decide import fits_action, fits_wildcards

_ANY_NAME = "NoNameOfOurs"
# Services whose actions hand out rights. Those that only read are no way to more.
_HANDS_OUT_RIGHTS = ("iam", "organizations", "sso", "sts")
_READS = re.compile(r"(get|list|simulate)[^*?]*[*?]")
_WILDCARDS = re.compile(r"[*?]")
# With fewer letters of its own, a pattern covers names of other teams too.
_FEWEST_LETTERS = 3
# What holds data or rights: service, the beginning of its names, what people call it.
_HOLDERS = (
    ("s3", "", "bucket"),
    ("ecr", "repository/", "repository"),
    ("iam", "role/", "role"),
    ("secretsmanager", "secret:", "secret"),
)


def is_wide_action(pattern: str) -> bool:
    """Whether a pattern covers all actions of a service, or some of those that hand out rights."""
    if not _WILDCARDS.search(pattern):
        return False
    service, _, name = pattern.lower().partition(":")
    if fits_wildcards(name or service, _ANY_NAME.lower()):
        return True
    rights = any(fits_action(service, other) for other in _HANDS_OUT_RIGHTS)
    return bool(_WILDCARDS.search(service)) or (rights and not _READS.match(name))


def is_every_resource(pattern: str) -> bool:
    """Whether a pattern of ARNs covers a thing of any service."""
    return fits_wildcards(pattern, f"arn:aws:{_ANY_NAME}:{_ANY_NAME}:{_ANY_NAME}:{_ANY_NAME}/{_ANY_NAME}")


def kinds_without_name(pattern: str) -> Iterator[str]:
    """The kinds of things of which a pattern of ARNs covers any: `bucket`. None if it names one, or is everything."""
    parts = pattern.split(":", 5)
    if len(parts) < 6 or is_every_resource(pattern):
        return
    for service, beginning, kind in _HOLDERS:
        # A pattern without the beginning may cover it too.
        is_about = parts[5].startswith(beginning) or fits_wildcards(parts[5], f"{beginning}{_ANY_NAME}")
        name = parts[5].removeprefix(beginning)
        name = name.partition("/")[0] if kind == "bucket" else name
        if fits_wildcards(parts[2], service) and is_about and names_nothing(name):
            yield kind


def names_nothing(pattern: str) -> bool:
    """Whether a pattern of names covers those of other teams too: it has too few letters of its own."""
    return bool(_WILDCARDS.search(pattern)) and len(_WILDCARDS.sub("", pattern)) < _FEWEST_LETTERS
