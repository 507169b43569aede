# SPDX-License-Identifier: Apache-2.0
"""Values of the cloud in the form of the program's inputs, and whether both mean the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from components.oci.client.session import sdk_module

# Fields of rules without an effect: texts for people, and fields that the cloud adds.
_WITHOUT_EFFECT = frozenset({"description", "routeType", "cidrBlock", "serviceName"})
# Fields of jobs whose live value is a change even if the program leaves them unset.
_CHANGES_IF_SET = ("cmd", "commandLineArguments", "entrypoint", "environmentVariables")
_HUMP = re.compile(r"_([a-z0-9])")


def as_program_inputs(value: Any) -> Any:
    """A value of the SDK in the form of the program's inputs."""
    return _with_camel_case_keys(sdk_module("util").to_dict(value)) if value is not None else None


def _with_camel_case_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        rows = (
            (_HUMP.sub(lambda found: found[1].upper(), key), _with_camel_case_keys(item)) for key, item in value.items()
        )
        return {key: item for key, item in rows if item is not None}
    return [_with_camel_case_keys(item) for item in value] if isinstance(value, list | tuple) else value


def as_declared_if_equal(declared: Any, live: Any) -> Any:
    """The live value, or the declared one if both mean the same, such as rules in another order, or a number as
    text."""
    if isinstance(live, list) and live and all(isinstance(one, Mapping) for one in live):
        live = [as_rule(one) for one in live]
        given = declared if isinstance(declared, list) else []
        return declared if _sorted_rules(live) == _sorted_rules(as_rule(one) for one in given) else live
    return declared if _means_same(declared, live) else live


def as_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """A rule of a list as Pulumi has it: its ports are the destination ports."""
    renamed = {("stateless" if key == "isStateless" else key): value for key, value in rule.items()}
    for key in ("tcpOptions", "udpOptions"):
        if isinstance(renamed.get(key), Mapping):
            options = dict(renamed[key])
            renamed[key] = {**options.pop("destinationPortRange", {}), **options}
    return renamed


def _sorted_rules(rules: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(_rule_with_effect(rule), sort_keys=True) for rule in rules)


def _rule_with_effect(value: Any) -> Any:
    """A rule without fields that have no meaning. Numbers are texts, because some states have them so."""
    if isinstance(value, Mapping):
        rows = {key: _rule_with_effect(item) for key, item in value.items() if key not in _WITHOUT_EFFECT}
        return {key: item for key, item in rows.items() if item not in ("", "false", {}, [])}
    if isinstance(value, list):
        return [_rule_with_effect(item) for item in value]
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _means_same(declared: Any, live: Any) -> bool:
    """Whether the declared value equals the live one. The cloud fills in missing fields, and some of those matter."""
    if isinstance(declared, Mapping) and isinstance(live, Mapping):
        added = any(live.get(key) and key not in declared for key in _CHANGES_IF_SET)
        return not added and all(_means_same(value, live.get(key)) for key, value in declared.items())
    if isinstance(declared, list) and isinstance(live, list):
        return sorted(map(str, declared)) == sorted(map(str, live))
    if declared is None or live is None:
        return not declared and not live
    return str(declared).lower() == str(live).lower()
