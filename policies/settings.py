# SPDX-License-Identifier: Apache-2.0
"""What a team sets of the pack: levels by environment, ceilings, rules that nobody may waive; and the stacks' waivers.

The engine reads the file of `--policy-pack-config`; a review without the engine reads the same file here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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
# Pulumi's level for rules that also fix resources. Ours fix none, so it means `mandatory`.
_SAME_AS_MANDATORY = "remediate"
SHARED: Mapping[str, Any] = {
    "levels": {
        "description": "The rule's level by environment; `*` stands for those not named.",
        "type": "object",
        "additionalProperties": {"type": "string", "enum": list(LEVELS)},
    },
    "waivable": {"description": "false: no stack may waive this rule.", "type": "boolean"},
}
# The keys of the stack file, as the engine gives them to a pack.
WAIVERS_KEY, ACCESS_KEY = "trainyard:waivers", "trainyard:access"


class PolicyConfigError(ValueError):
    """The configuration of the pack is invalid. The message says why."""


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """The configuration of one rule. `level` None: it is not set."""

    level: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)

    def level_in(self, environment: str, otherwise: str) -> str:
        level = in_environment(self.properties.get("levels") or {}, environment) or self.level or otherwise
        return MANDATORY if level == _SAME_AS_MANDATORY else str(level)

    @property
    def waivable(self) -> bool:
        return self.properties.get("waivable") is not False


def in_environment(by_environment: Mapping[str, Any], environment: str) -> Any:
    """The value for an environment, else the value for all others, else None."""
    return by_environment.get(environment, by_environment.get(OTHERS))


def settings_of(rule: PolicyRule | StackRule) -> Mapping[str, Any]:
    """The properties of a rule's configuration, as JSON Schema."""
    return {**SHARED, **(rule.settings if isinstance(rule, StackRule) else {})}


def read_rule_settings(config: Mapping[str, Any]) -> Mapping[str, RuleSettings]:
    """The settings by rule, from the content of a configuration file. Raises PolicyConfigError."""
    schemas = {rule.id: settings_of(rule) for rule in all_rules()} | {NOT_KNOWN_YET: {}}
    for name in config:
        if name != ALL and name not in schemas:
            from difflib import get_close_matches  # a lazy import, because the pack starts with each preview

            near = "".join(f": did you mean `{rule}`?" for rule in get_close_matches(name, schemas, 1))
            raise PolicyConfigError(f"`{name}` is not a rule of the pack (docs/policies.md){near}")
    everywhere = _valid_level(ALL, config[ALL]) if ALL in config else None
    return {name: _settings_of_rule(name, config.get(name), everywhere, schema) for name, schema in schemas.items()}


def _settings_of_rule(name: str, value: Any, everywhere: str | None, schema: Mapping[str, Any]) -> RuleSettings:
    if value is None:
        return RuleSettings(everywhere)
    if not isinstance(value, Mapping):
        return RuleSettings(_valid_level(name, value))
    properties = {key: item for key, item in value.items() if key != "enforcementLevel"}
    from jsonschema import Draft202012Validator

    wrong = []
    whole = {"type": "object", "additionalProperties": False, "properties": schema}
    for error in sorted(Draft202012Validator(whole).iter_errors(properties), key=lambda problem: list(problem.path)):
        place = ".".join(map(str, error.path))
        wrong.append(f"{place}: {error.message}" if place else error.message)
    if wrong:
        raise PolicyConfigError(f"`{name}`: {'; '.join(wrong)}")
    level = _valid_level(name, value["enforcementLevel"]) if "enforcementLevel" in value else everywhere
    return RuleSettings(level, properties)


def _valid_level(name: str, value: Any) -> str:
    if value not in (*LEVELS, _SAME_AS_MANDATORY):
        raise PolicyConfigError(f"`{name}`: {value!r} is not a level; use {', '.join(LEVELS)}")
    return str(value)


@dataclass(frozen=True, slots=True)
class Waiver:
    """Why a stack may break a rule, and the last day on which it may.

    Through that day, a failure is shown as a remark that names the waiver. From the next day on, the waiver has no
    effect.
    """

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
    """The waivers of a stack, by rule. Those without a reason or a date are ignored: `trainyard check` reports them."""
    if not isinstance(value, Mapping):
        return {}
    found = {str(rule): _parse_waiver(row) for rule, row in value.items() if isinstance(row, Mapping)}
    return {rule: waiver for rule, waiver in found.items() if waiver is not None}


def waivers_from_json(text: str) -> Mapping[str, Waiver]:
    """The waivers in a value of Pulumi's configuration, which is JSON."""
    try:
        return read_waivers(json.loads(text)) if text else {}
    except ValueError:
        return {}


def access_mode_from_json(text: str) -> str:
    """The mode in the stack's `access`, which is JSON. Empty if it has none."""
    try:
        access = json.loads(text) if text else {}
    except ValueError:
        return ""
    return str(access.get("mode") or "") if isinstance(access, Mapping) else ""


def _parse_waiver(row: Mapping[str, Any]) -> Waiver | None:
    reason = str(row.get("reason") or "").strip()
    try:
        return Waiver(reason, date.fromisoformat(str(row.get("until")))) if reason else None
    except ValueError:
        return None
