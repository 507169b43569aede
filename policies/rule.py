# SPDX-License-Identifier: Apache-2.0
"""The shape of a rule, and how the rules are found: each file of policies/rules declares one `RULE`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from policies.verdicts import Verdict, attempt

RULES = Path(__file__).with_name("rules")


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource as the engine is about to make it: type and inputs, by the names Pulumi's providers give them."""

    type: str
    properties: Mapping[str, Any]

    @property
    def tags(self) -> Mapping[str, Any]:
        """Freeform tags of OCI, tags of our own resources."""
        found: Mapping[str, Any] = self.properties.get("freeformTags") or self.properties.get("tags") or {}
        return found


Examples = Mapping[str, Resource]


@dataclass(frozen=True, slots=True)
class Rule:
    """`level` mandatory stops the deployment, advisory is a remark. The examples are what its tests run on."""

    id: str
    level: Literal["mandatory", "advisory"]
    asks: str
    remedy: str
    types: tuple[str, ...]
    judge: Callable[[Resource], Verdict]
    passes: Examples
    fails: Examples
    unknown: Examples = field(default_factory=dict)

    def verdict(self, resource: Resource) -> Verdict:
        """The rule's word on a resource of one of its types."""
        return attempt(self.judge, resource)


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule, in the order of its files' names: a new file is a new rule."""
    names = sorted(path.stem for path in RULES.glob("*.py") if path.stem != "__init__")
    return tuple(import_module(f"policies.rules.{name}").RULE for name in names)
