# SPDX-License-Identifier: Apache-2.0
"""Turns the rules into policies of Pulumi's CrossGuard, and the engine's properties into plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
)
from pulumi_policy.proxy import UnknownValueError

from launcher.escaping import terminal, terminal_lines
from policies.rule import JudgedResource, PolicyRule, PolicyVerdict, Unknown, rules

NAME = "trainyard"
NOT_KNOWN_YET = "not-known-yet"


def policies() -> list[Policy]:
    """A policy for each rule, and one that only reports verdicts that are still unknown."""
    remarks = ResourceValidationPolicy(
        name=NOT_KNOWN_YET,
        description="Some values exist only after other resources are made. `pulumi up` checks these rules again.",
        enforcement_level=EnforcementLevel.ADVISORY,
        validate=_remark,
    )
    return [*(_policy(rule) for rule in rules()), remarks]


def resource(args: ResourceValidationArgs) -> JudgedResource:
    return JudgedResource(args.resource_type, _mapping(args.props, ""))


def _policy(rule: PolicyRule) -> ResourceValidationPolicy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        for _, verdict in _verdicts((rule,), args):
            if verdict.outcome == "fail":
                report(terminal_lines(f"{args.name}: {verdict.because}\nremedy: {rule.remedy}"), args.urn)

    level = EnforcementLevel(rule.level)
    return ResourceValidationPolicy(rule.id, rule.asks, validate, level, remediation_steps=rule.remedy)


def _remark(args: ResourceValidationArgs, report: ReportViolation) -> None:
    for rule, verdict in _verdicts(rules(), args):
        if verdict.outcome == "unknown":
            report(terminal(f"{args.name}: {rule.id}: {verdict.because}"), args.urn)


def _verdicts(chosen: Sequence[PolicyRule], args: ResourceValidationArgs) -> Iterator[tuple[PolicyRule, PolicyVerdict]]:
    concerned = [rule for rule in chosen if args.resource_type in rule.types]
    if concerned:
        subject = resource(args)
        yield from ((rule, rule.verdict(subject)) for rule in concerned)


def _mapping(proxy: Mapping[str, Any], path: str) -> dict[str, Any]:
    return {key: _value(proxy, key, f"{path}.{key}" if path else key) for key in proxy}


def _value(proxy: Any, key: Any, path: str) -> Any:
    """The value of a key of Pulumi's proxies. They raise if a preview does not know it."""
    try:
        value = proxy[key]
    except UnknownValueError:
        return Unknown(path)
    if isinstance(value, Mapping):
        return _mapping(value, path)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_value(value, index, f"{path}[{index}]") for index in range(len(value))]
    return value
