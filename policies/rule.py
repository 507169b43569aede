# SPDX-License-Identifier: Apache-2.0
"""What a policy rule is. Each file of policies/rules declares one, called `RULE`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from policies.verdicts import PolicyVerdict, attempt

RULES = Path(__file__).with_name("rules")


@dataclass(frozen=True, slots=True)
class JudgedResource:
    """A resource before the engine makes it: its type and inputs, under the names of Pulumi's providers."""

    type: str
    properties: Mapping[str, Any]

    @property
    def tags(self) -> Mapping[str, Any]:
        """The freeform tags of an OCI resource; other resources call them tags."""
        tags: Mapping[str, Any] = self.properties.get("freeformTags") or self.properties.get("tags") or {}
        return tags


Examples = Mapping[str, JudgedResource]
Judge = Callable[[JudgedResource], PolicyVerdict]


def by_type(rows: Mapping[str, Judge]) -> Judge:
    """One rule for resources that say the same in different ways: a row for each type."""
    return lambda resource: rows[resource.type](resource)


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A mandatory rule stops the deployment, an advisory one only remarks. Its examples are its tests."""

    id: str
    level: Literal["mandatory", "advisory"]
    asks: str
    remedy: str
    types: tuple[str, ...]
    judge: Judge
    passes: Examples
    fails: Examples
    unknown: Examples = field(default_factory=dict)

    def verdict(self, resource: JudgedResource) -> PolicyVerdict:
        """The rule's verdict on a resource of one of its types."""
        return attempt(self.judge, resource)


@cache
def rules() -> tuple[PolicyRule, ...]:
    """All rules, sorted by file name. A new file is a new rule."""
    names = sorted(path.stem for path in RULES.glob("*.py") if path.stem != "__init__")
    return tuple(import_module(f"policies.rules.{name}").RULE for name in names)


def refusing(resource: JudgedResource) -> frozenset[str]:
    """The ids of the mandatory rules that refuse a resource."""
    concerned = (rule for rule in rules() if resource.type in rule.types and rule.level == "mandatory")
    return frozenset(rule.id for rule in concerned if rule.verdict(resource).outcome == "fail")
