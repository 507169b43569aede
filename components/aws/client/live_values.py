# SPDX-License-Identifier: Apache-2.0
"""Values of AWS in the form of the program's inputs, and whether both mean the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from components.aws.iam.documents import canonical_document
from components.aws.types.aws_resource_type import pulumi_name_of_member
from components.platform.live import Reading
from components.platform.review import ReviewedResource


def as_setting_of_program(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {pulumi_name_of_member(key): as_setting_of_program(item) for key, item in value.items()}
    return [as_setting_of_program(item) for item in value] if isinstance(value, list) else value


def declared_or_live_setting(declared: Any, live: Any) -> Any:
    """The live value, or the declared one if both mean the same: the cloud fills in fields without an effect."""
    live = as_setting_of_program(live)
    same = canonical_document(_with_effect(declared)) == canonical_document(_with_effect(live))
    return declared if same else live


def record_aws_tags(reading: Reading, resource: ReviewedResource, key: str, tags: Iterable[Mapping[str, str]]) -> None:
    """Tags that the stack declares, and that are gone or have another value."""
    if resource.inputs.get(key):
        reading.record_tags(resource, key, {tag["Key"]: tag["Value"] for tag in tags})


def _with_effect(value: Any) -> Any:
    """A value without empty fields. Numbers and truths are texts, because some states have them so."""
    if isinstance(value, Mapping):
        fields = {key: _with_effect(item) for key, item in value.items()}
        return {key: item for key, item in fields.items() if item not in ("", "false", {}, [])}
    if isinstance(value, list | tuple):
        return sorted((_with_effect(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
