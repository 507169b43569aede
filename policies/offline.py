# SPDX-License-Identifier: Apache-2.0
"""The results of the pack on a snapshot, without the engine. They are the same as with it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from components.platform.review import SECRET, UNKNOWN, ReviewedResource, Snapshot
from policies.rule import JudgedResource, Unknown
from policies.settings import read_rule_settings, read_waivers
from policies.verdicts import PolicyContext, PolicyResult, judge_all

MASKED = "is a secret, which only a deployment reads"


def results_of_snapshot(side: Snapshot, config: Mapping[str, Any] | None, on: date) -> tuple[PolicyResult, ...]:
    """The results on one side. `config`: the content of a file for `--policy-pack-config`. `on`: the date for waivers.

    Raises PolicyConfigError.
    """
    terms = PolicyContext(
        on=on,
        environment=str(side.plan.get("environment") or ""),
        access_mode=str((side.plan.get("access") or {}).get("mode") or ""),
        settings=read_rule_settings(config or {}),
        waivers=read_waivers(side.plan.get("waivers")),
    )
    return tuple(judge_all([as_judged_resource(resource) for resource in side.resources], terms))


def as_judged_resource(resource: ReviewedResource) -> JudgedResource:
    properties = {key: _with_unknowns(value, key) for key, value in resource.inputs.items()}
    return JudgedResource(resource.type, properties, resource.name, resource.urn, resource.protect, not resource.custom)


def _with_unknowns(value: Any, path: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_unknowns(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_unknowns(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if value == UNKNOWN:
        return Unknown(path)
    return Unknown(path, MASKED) if value == SECRET else value
