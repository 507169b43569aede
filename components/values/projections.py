# SPDX-License-Identifier: Apache-2.0
"""What resources of a type mean: the security rules in their inputs, which have the names of Pulumi's provider."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from catalog.platforms import platforms
from components.values.security_rules import SecurityRule

RuleReader = Callable[[Mapping[str, Any]], Iterable[SecurityRule]]


@cache
def rule_readers() -> Mapping[str, RuleReader]:
    """Of each resource type with security rules, by its token."""
    homes = [row.home for row in platforms().values() if row.provider]
    modules = [import_module(f"components.{home}.types.security_rules") for home in homes]
    return {token: reader for module in modules for token, reader in module.RULE_READERS.items()}


def security_rules_of(token: str, inputs: Mapping[str, Any]) -> tuple[SecurityRule, ...]:
    reader = rule_readers().get(token)
    return tuple(reader(inputs)) if reader else ()
