# SPDX-License-Identifier: Apache-2.0
"""Tags: those of the program, those that the provider adds everywhere, and the mark of an attempt."""

from collections.abc import Mapping
from typing import Any

from localcloud.plugin.aws.shapes import Judged

# Says which attempt made a resource. The plugin sets it at the creation, and shows it to no program.
ATTEMPT = "trainyard-local:attempt"
_OF_AWS = "aws:"


def all_tags(defaults: Mapping[str, str], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The tags that a resource has: the program's own come before those of the provider."""
    return {**defaults, **(inputs.get("tags") or {})}


def visible(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in tags.items() if key != ATTEMPT and not key.startswith(_OF_AWS)}


def tags_for(shape: Any, kind: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """The parameter of a creation that carries tags."""
    if "TagSpecifications" in shape.members:
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        return {"TagSpecifications": [{"ResourceType": kind, "Tags": pairs}]}
    name = next((name for name in ("Tags", "tags") if name in shape.members), None)
    return {} if name is None else {name: Judged().parameters(shape.members[name], dict(tags))}
