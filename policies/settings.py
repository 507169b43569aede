# SPDX-License-Identifier: Apache-2.0
"""What a team sets of the pack: levels by environment, ceilings, rules that nobody may waive; and the stacks' waivers.

The engine reads the file of `--policy-pack-config`; a review without the engine reads the same file here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from policies.rule import PolicyRule, StackRule, all_rules

MANDATORY, ADVISORY, DISABLED = "mandatory", "advisory", "disabled"
LEVELS = (MANDATORY, ADVISORY, DISABLED)
# In the configuration file: every rule that has no level of its own there.
ALL = "all"
# The policy under which verdicts that are still unknown are reported.
NOT_KNOWN_YET = "not-known-yet"
# In settings by environment: every environment that is not named.
OTHERS = "*"
# How Pulumi's engine says `mandatory` for a rule that could also mend a resource. Ours mend nothing.
_SAME_AS_MANDATORY = "remediate"
SHARED: Mapping[str, Any] = {
    "levels": {
        "description": "The rule's level by environment; `*` stands for those not named.",
        "type": "object",
        "additionalProperties": {"type": "string", "enum": list(LEVELS)},
    },
    "waivable": {"description": "false: no stack may waive this rule.", "type": "boolean"},
}
# The key of the stack file, as the engine gives it to a pack.
KEY = "trainyard:waivers"


class PolicyConfigError(ValueError):
    """What is wrong with a configuration of the pack."""


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """What a configuration says of one rule. `level` None: nothing."""

    level: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)

    def level_in(self, environment: str, otherwise: str) -> str:
        level = in_environment(self.properties.get("levels") or {}, environment) or self.level or otherwise
        return MANDATORY if level == _SAME_AS_MANDATORY else str(level)

    @property
    def waivable(self) -> bool:
        return self.properties.get("waivable") is not False


def in_environment(by_environment: Mapping[str, Any], environment: str) -> Any:
    """What is set for an environment, else what is set for all others, else None."""
    return by_environment.get(environment, by_environment.get(OTHERS))


def settings_of(rule: PolicyRule | StackRule) -> Mapping[str, Any]:
    """The properties of a rule's configuration, as JSON Schema."""
    return {**SHARED, **(rule.settings if isinstance(rule, StackRule) else {})}


def read_settings(config: Mapping[str, Any]) -> Mapping[str, RuleSettings]:
    """The settings by rule, from the content of a configuration file. Raises PolicyConfigError."""
    schemas = {rule.id: settings_of(rule) for rule in all_rules()} | {NOT_KNOWN_YET: {}}
    for name in config:
        if name != ALL and name not in schemas:
            raise PolicyConfigError(f"`{name}` is not a rule of the pack (docs/policies.md lists them)")
    everywhere = _level(ALL, config[ALL]) if ALL in config else None
    return {name: _settings(name, config.get(name), everywhere, schema) for name, schema in schemas.items()}


def _settings(name: str, said: Any, everywhere: str | None, schema: Mapping[str, Any]) -> RuleSettings:
    if said is None:
        return RuleSettings(everywhere)
    if not isinstance(said, Mapping):
        return RuleSettings(_level(name, said))
    properties = {key: value for key, value in said.items() if key != "enforcementLevel"}
    wrong = [*_wrong(properties, schema)]
    if wrong:
        raise PolicyConfigError(f"`{name}`: {'; '.join(wrong)}")
    level = _level(name, said["enforcementLevel"]) if "enforcementLevel" in said else everywhere
    return RuleSettings(level, properties)


def _level(name: str, said: Any) -> str:
    if said not in (*LEVELS, _SAME_AS_MANDATORY):
        raise PolicyConfigError(f"`{name}`: {said!r} is not a level; use {', '.join(LEVELS)}")
    return str(said)


def _wrong(properties: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    from jsonschema import Draft202012Validator

    whole = {"type": "object", "additionalProperties": False, "properties": schema}
    for error in sorted(Draft202012Validator(whole).iter_errors(properties), key=lambda one: list(one.path)):
        place = ".".join(map(str, error.path))
        yield f"{place}: {error.message}" if place else error.message


@dataclass(frozen=True, slots=True)
class Waiver:
    reason: str
    until: date

    def holds(self, on: date) -> bool:
        return on <= self.until

    @property
    def ended(self) -> str:
        return f"its waiver ended on {self.until.isoformat()}"

    def __str__(self) -> str:
        return f"waived until {self.until.isoformat()}: {self.reason}"


def read_waivers(value: Any) -> Mapping[str, Waiver]:
    """The waivers of a stack, by rule. What has no reason or no date is none: `trainyard check` reports it."""
    if not isinstance(value, Mapping):
        return {}
    found = {str(rule): _waiver(said) for rule, said in value.items() if isinstance(said, Mapping)}
    return {rule: waiver for rule, waiver in found.items() if waiver is not None}


def from_json(text: str) -> Mapping[str, Waiver]:
    """The same from a value of Pulumi's configuration, which is JSON in a text."""
    try:
        return read_waivers(json.loads(text)) if text else {}
    except ValueError:
        return {}


def _waiver(said: Mapping[str, Any]) -> Waiver | None:
    reason = str(said.get("reason") or "").strip()
    try:
        return Waiver(reason, date.fromisoformat(str(said.get("until")))) if reason else None
    except ValueError:
        return None
