# SPDX-License-Identifier: Apache-2.0
"""Judges resources and stacks by the rules, with the settings of a team and the waivers of a stack, on a date."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from policies.rule import (
    JudgedResource,
    JudgedStack,
    NotKnownError,
    PolicyRule,
    PolicyVerdict,
    StackRule,
    resource_rules,
)
from policies.rule import stack_rules as rules_of_stacks
from policies.settings import ADVISORY, DISABLED, NOT_KNOWN_YET, RuleSettings, Waiver

ENVIRONMENT_TAG = "environment"


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """A verdict to report: anything but a pass. `resource`: its name; empty: the whole stack.

    `level`: the level in this environment, on this date. `waiver`: the last day and the reason of a waiver in force, or
    when an earlier waiver ended.
    """

    rule: str
    level: str
    resource: str
    outcome: Literal["fail", "unknown", "waived"]
    because: str
    remedy: str
    waiver: str = ""
    urn: str = ""


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """What verdicts depend on besides resources. `environment` empty: it is in the tags of the resources.
    `access_mode`: that of the stack's access."""

    on: date
    environment: str = ""
    settings: Mapping[str, RuleSettings] = field(default_factory=dict)
    waivers: Mapping[str, Waiver] = field(default_factory=dict)
    access_mode: str = ""

    def of(self, rule: str) -> RuleSettings:
        return self.settings.get(rule, RuleSettings())

    def level(self, rule: PolicyRule | StackRule, environment: str) -> str:
        return self.of(rule.id).level_in(environment, rule.level)


def judge_single_resource(resource: JudgedResource, terms: PolicyContext) -> Iterator[PolicyResult]:
    """The results of the rules for single resources."""
    environment = terms.environment or environment_of_resources((resource,))
    for rule in resource_rules():
        if resource.type in rule.types and terms.level(rule, environment) != DISABLED:
            yield from _policy_results(rule, resource, rule.verdict(resource), terms, environment)


def judge_stack(resources: Sequence[JudgedResource], terms: PolicyContext) -> Iterator[PolicyResult]:
    """The results of the rules for whole stacks."""
    environment = terms.environment or environment_of_resources(resources)
    for rule in rules_of_stacks():
        if terms.level(rule, environment) != DISABLED:
            stack = JudgedStack(tuple(resources), environment, terms.of(rule.id).properties, terms.access_mode)
            for resource, verdict in rule.verdicts(stack):
                yield from _policy_results(rule, resource, verdict, terms, environment)


def judge_all(resources: Sequence[JudgedResource], terms: PolicyContext) -> Iterator[PolicyResult]:
    for resource in resources:
        yield from judge_single_resource(resource, terms)
    yield from judge_stack(resources, terms)


def environment_of_resources(resources: Iterable[JudgedResource]) -> str:
    """The environment, from the first resource whose tag names one."""
    for resource in resources:
        try:
            named: Any = resource.tags.get(ENVIRONMENT_TAG)
            if named:
                return str(named)
        except (NotKnownError, AttributeError):
            continue
    return ""


def _policy_results(
    rule: PolicyRule | StackRule,
    resource: JudgedResource | None,
    verdict: PolicyVerdict,
    terms: PolicyContext,
    environment: str,
) -> Iterator[PolicyResult]:
    if verdict.outcome == "pass":
        return
    name, urn = (resource.name, resource.urn) if resource else ("", "")
    if verdict.outcome == "unknown":
        level = terms.of(NOT_KNOWN_YET).level_in(environment, ADVISORY)
        if level != DISABLED:
            yield PolicyResult(rule.id, level, name, "unknown", verdict.because, rule.remedy, urn=urn)
        return
    level, waiver, because = terms.level(rule, environment), terms.waivers.get(rule.id), verdict.because
    if waiver and waiver.holds(terms.on) and terms.of(rule.id).waivable:
        yield PolicyResult(rule.id, ADVISORY, name, "waived", because, rule.remedy, str(waiver), urn)
        return
    ended = "" if waiver is None or waiver.holds(terms.on) else waiver.ended
    if waiver:
        because = f"{because}; {ended or 'the pack lets nobody waive this rule'}"
    yield PolicyResult(rule.id, level, name, "fail", because, rule.remedy, ended, urn)
