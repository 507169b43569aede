# SPDX-License-Identifier: Apache-2.0
"""A rule that is one comparison: a property of some types must have a value. Passers and failers stand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from policies.rule import PASS, Judge, JudgedResource, Level, PolicyRule, PolicyVerdict, Unknown, by_type, fail


@dataclass(frozen=True, slots=True)
class Value:
    """`path` leads to the property: `versioningConfiguration.status`. `wanted`: its value, or what a value must fulfil.

    Examples are values, by a name that says what they show; None: the property is not there.
    """

    path: str
    wanted: Any
    passes: Mapping[str, Any]
    fails: Mapping[str, Any]

    def holds(self, value: Any) -> bool:
        return bool(self.wanted(value) if callable(self.wanted) else value == self.wanted)

    def read(self, resource: JudgedResource) -> Any:
        value: Any = resource.properties
        for key in self.path.split("."):
            value = (value or {}).get(key)
        return value

    def example(self, kind: str, value: Any) -> JudgedResource:
        """A resource with this value and nothing else."""
        *above, last = self.path.split(".")
        properties = {} if value is None else {last: value}
        for key in reversed(above):
            properties = {key: properties}
        return JudgedResource(kind, properties)


def judge_value(value: Value, because: str) -> Judge:
    """The judge of one comparison, for rules that have other rows too."""

    def judge(resource: JudgedResource) -> PolicyVerdict:
        return PASS if value.holds(value.read(resource)) else fail(because)

    return judge


def value_rule(
    id: str,  # noqa: A002  # the columns of PolicyRule
    level: Level,
    asks: str,
    remedy: str,
    because: str,
    where: Mapping[str, Value],
) -> PolicyRule:
    """`where`: the property by type. `because`: what is wrong where the value is another."""
    made = [(kind, value) for kind, value in where.items()]
    return PolicyRule(
        id=id,
        level=level,
        asks=asks,
        remedy=remedy,
        types=tuple(where),
        judge=by_type({kind: judge_value(value, because) for kind, value in made}),
        passes={name: one.example(kind, said) for kind, one in made for name, said in one.passes.items()},
        fails={name: one.example(kind, said) for kind, one in made for name, said in one.fails.items()},
        unknown={f"`{one.path}` decided elsewhere": one.example(kind, Unknown(one.path)) for kind, one in made},
    )
