# SPDX-License-Identifier: Apache-2.0
"""Checks of waivers: the rule and the last day must exist, and the day must not be over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path

from schemas.facts import Facts
from schemas.findings import Wrong, at, rule
from schemas.model import Stack
from schemas.name_suggestions import suggest_name

# A rule of the policy pack is a file, so the files are the list. The pack itself is not imported.
_RULES = Path(__file__).resolve().parents[2] / "policies" / "rules"


@rule("TY720", "a waiver of a rule that does not exist")
def unknown_rule(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name in stack.waivers:
        if name not in rule_ids():
            remedy = f"{suggest_name(name, rule_ids())} docs/policies.md lists the rules"
            yield Wrong(at("waivers", name), f"the policy pack has no rule `{name}`", remedy)


@rule("TY721", "a waiver ends on a day that does not exist")
def unknown_day(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, waiver in stack.waivers.items():
        if _parse_day(waiver.until) is None:
            message = f"`{waiver.until}` is not a day of the calendar"
            yield Wrong(at("waivers", name, "until"), message, 'write the last day, as year-month-day: "2026-12-31"')


@rule("TY722", "a waiver that has ended", severity="warning")
def ended_waiver(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    """Only a warning: a stack that keeps the rule by now needs no waiver. The policy pack judges the others."""
    for name, waiver in stack.waivers.items():
        until = _parse_day(waiver.until)
        if until is not None and until < facts.today:
            message = f"the waiver of `{name}` ended on {until.isoformat()}, so the rule holds again"
            yield Wrong(
                at("waivers", name, "until"), message, "remove it if the stack keeps the rule, or have it renewed"
            )


def _parse_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


@cache
def rule_ids() -> tuple[str, ...]:
    """All ids, sorted: `policies/rules/public_bucket.py` is `public-bucket`."""
    return tuple(sorted(file.stem.replace("_", "-") for file in _RULES.glob("*.py") if file.stem != "__init__"))
