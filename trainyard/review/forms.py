# SPDX-License-Identifier: Apache-2.0
"""The forms of a review, by their names in `--format`: text, JSON and SARIF are made here."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from catalog.version import VERSION
from components.plan.show import json_text, plain
from launcher.escaping import sarif as escaped
from launcher.escaping import terminal
from trainyard.review.gates import Tripped
from trainyard.review.markdown import markdown
from trainyard.review.model import Review
from trainyard.review.page import page
from trainyard.review.sections import also, sections, verdict

FORMAT = 1
_LEVELS = {"error": "error", "warning": "warning", "note": "note", "mandatory": "error", "advisory": "warning"}
# A decision's section -> the rule of code scanning, and what it says.
_RULES = {
    "Opens, closes": ("review/passages", "Who can reach what changes"),
    "Gains, loses": ("review/access", "Who may do what changes"),
    "Ends, is lost": ("review/lost", "Something ends, is replaced or is lost"),
}


def as_json(reviews: Sequence[Review], gates: Sequence[Tripped]) -> str:
    """docs/review.md and schemas/review.schema.json describe it."""
    shown = [{"verdict": verdict(one), "decisions": one.has_decisions, **plain(one)} for one in reviews]
    return json_text({"format": FORMAT, "reviews": shown, "gates": [plain(one) for one in gates]})


def sarif(reviews: Sequence[Review], gates: Sequence[Tripped]) -> str:
    """SARIF 2.1.0: new findings, results of the policy pack, and what must be decided first."""
    results = [row for one in reviews for row in _results(one)]
    used = {str(row["ruleId"]) for row in results}
    titles = dict(_RULES.values())
    rules = [
        {"id": code, "shortDescription": {"text": escaped(titles[code])}} if code in titles else {"id": code}
        for code in sorted(used)
    ]
    driver = {"name": "trainyard review", "semanticVersion": VERSION, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2)


def _results(one: Review) -> Iterator[dict[str, Any]]:
    for section in sections(one):
        if section.title in _RULES:
            for item in section.items:
                if item.urgent:
                    yield _result(one, _RULES[section.title][0], "warning", ". ".join((item.words, *item.details)), 1)
    for row in (*one.findings, *one.pack):
        level = "note" if row.outcome in ("waived", "unknown") else _LEVELS.get(row.level, "warning")
        place = f"{row.place}: " if row.place else ""
        yield _result(one, row.code, level, f"{place}{row.message}. {row.remedy}".strip(), row.line or 1)


def _result(one: Review, rule: str, level: str, message: str, line: int) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": quote(os.fsencode(one.file))}, "region": {"startLine": line}}
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": escaped(message)},
        "locations": [{"physicalLocation": place}],
    }


def text(reviews: Sequence[Review], gates: Sequence[Tripped]) -> str:
    """A verdict for each stack first, then the stacks that need a decision."""
    lines = [terminal(verdict(one)) for one in reviews]
    for one in reviews:
        lines += _stack(one, len(reviews) > 1)
    if gates:
        lines += ["", *(terminal(f"gate {one.gate}: {one.stack}: {one.because}") for one in gates)]
    return "\n".join(lines)


def _stack(one: Review, titled: bool) -> Iterator[str]:
    if not one.has_decisions:
        return
    shown, rest = sections(one), also(one)
    if titled and (shown or rest):
        yield f"\n{terminal(one.stack)}"
    for section in shown:
        yield f"\n{section.title}"
        for item in section.items:
            yield f"  {'!' if item.urgent else '-'} {terminal(item.words)}"
            yield from (f"      {terminal(detail)}" for detail in item.details)
    if rest:
        yield ""
        yield from (f"  {terminal(line)}" for line in rest)


FORMS: Mapping[str, Callable[[Sequence[Review], Sequence[Tripped]], str]] = {
    "text": text,
    "markdown": markdown,
    "html": page,
    "json": as_json,
    "sarif": sarif,
}
