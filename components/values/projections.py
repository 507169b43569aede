# SPDX-License-Identifier: Apache-2.0
"""What resources of a type mean, by their inputs, which have the names of Pulumi's provider: their security rules, and
whether machines get public addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.values.resource_types import TypesWith, find_resource_type
from components.values.security_rules import SecurityRule


def types_with_rules(*without: str) -> TypesWith[Any]:
    """The types that have security rules, without these."""
    return TypesWith(lambda row: None if row.token in without else row.security_rules)


def security_rules_of(token: str, inputs: Mapping[str, Any]) -> tuple[SecurityRule, ...]:
    row = find_resource_type(token)
    return tuple(row.security_rules(inputs)) if row and row.security_rules else ()


def gives_public_address(token: str, inputs: Mapping[str, Any]) -> bool:
    row = find_resource_type(token)
    return row is not None and any(is_set(value) for path in row.public_by for value in input_values(inputs, path))


def prohibits_public_addresses(token: str, inputs: Mapping[str, Any]) -> bool:
    row = find_resource_type(token)
    return row is not None and any(is_set(inputs.get(name)) for name in row.private_by)


def input_values(inputs: Mapping[str, Any], path: str) -> Iterator[Any]:
    """The values at a path. A list on the way stands for each of its items. A value on the way that cannot be read, as
    it is not known yet, is one of them."""
    name, _, rest = path.partition(".")
    value = inputs.get(name)
    for item in value if isinstance(value, list | tuple) else () if value is None else (value,):
        if rest and isinstance(item, Mapping):
            yield from input_values(item, rest)
        else:
            yield item


def is_set(value: Any) -> bool:
    """A launch template has texts in place of booleans."""
    return value is not None and str(value).lower() == "true"
