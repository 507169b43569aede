# SPDX-License-Identifier: Apache-2.0
"""The forms of a review, by their names in `--format`: text, HTML, JSON and SARIF are made here."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from catalog.version import VERSION
from components.plan.show import json_text, plain
from launcher.escaping import terminal
from trainyard.markup import escape_sarif
from trainyard.review.gates import Tripped
from trainyard.review.markdown import markdown
from trainyard.review.model import Picture, Review
from trainyard.review.picture import svg
from trainyard.review.sections import Section, footnotes, sections, verdict

FORMAT = 1
_LEVELS = {"error": "error", "warning": "warning", "note": "note", "mandatory": "error", "advisory": "warning"}
# Section of a review -> its rule in code scanning, and the title of the rule.
_RULES = {
    "Opens, closes": ("review/passages", "Who can reach what changes"),
    "Gains, loses": ("review/access", "Who may do what changes"),
    "Ends, is lost": ("review/lost", "Something ends, is replaced or is lost"),
}

_STYLE = """\
:root{color-scheme:light dark;--ink:#1d2330;--soft:#5a6372;--paper:#fff;--card:#f5f6f8;--line:#c9ced6;--warn:#a4310b}
@media (prefers-color-scheme:dark){
:root{--ink:#e6e9ef;--soft:#a2abba;--paper:#14171d;--card:#1e232b;--line:#3d4552;--warn:#ff9d73}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:1rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.3rem}h2{font-size:1.15rem;margin:2rem 0 .25rem}h3{font-size:1rem;margin:1rem 0 .25rem}
p.of,ul.also{color:var(--soft)}ul{margin:.25rem 0;padding-left:1.3rem}
li.urgent>span{color:var(--warn);font-weight:600}li ul{color:var(--soft)}
section{border-top:1px solid var(--line)}.gate{color:var(--warn)}
figure{margin:1rem 0;overflow-x:auto;background:var(--card);border-radius:8px;padding:.5rem}
figcaption{color:var(--soft);font-size:.9rem}
table{border-collapse:collapse;font-size:.9rem}td,th{border:1px solid var(--line);padding:.15rem .5rem;text-align:left}
.picture{display:block;width:100%;min-width:34rem;font-size:13px;fill:var(--ink)}
.picture .box{fill:var(--paper);stroke:var(--soft)}.picture .subnet{fill:none;stroke:var(--line);stroke-dasharray:5 4}
.picture .edge{fill:none;stroke:var(--soft)}.picture marker path{fill:var(--soft)}.picture .title{fill:var(--soft)}
@media print{body{max-width:none;font-size:11pt}figure{break-inside:avoid;overflow:visible}.picture{min-width:0}
details>*{display:block}a{color:inherit}}
"""


def as_json(reviews: Sequence[Review], gates: Sequence[Tripped]) -> str:
    """The document that docs/review.md and schemas/review.schema.json describe."""
    shown = [{"verdict": verdict(one), "decisions": one.has_decisions, **plain(one)} for one in reviews]
    return json_text({"format": FORMAT, "reviews": shown, "gates": [plain(one) for one in gates]})


def sarif(reviews: Sequence[Review], gates: Sequence[Tripped]) -> str:
    """SARIF 2.1.0: new findings, results of the policy pack, and urgent decisions."""
    results = [row for one in reviews for row in _results(one)]
    used = {str(row["ruleId"]) for row in results}
    titles = dict(_RULES.values())
    rules = [
        {"id": code, "shortDescription": {"text": escape_sarif(titles[code])}} if code in titles else {"id": code}
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
        "message": {"text": escape_sarif(message)},
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
    shown, rest = sections(one), footnotes(one)
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


def page(reviews: Sequence[Review], gates: Sequence[Tripped]) -> str:
    """One HTML file, without scripts or other files: light and dark, on a phone and on paper."""
    first = reviews[0] if reviews else None
    deciding = sum(one.has_decisions for one in reviews)
    title = verdict(reviews[0]) if len(reviews) == 1 else f"{deciding} of {len(reviews)} stacks to decide about"
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{_html_text(title)}</title><style>\n{_STYLE}</style></head><body>",
        f"<h1>{_html_text(title)}</h1>",
    ]
    if first:
        against = f", against {first.against}" if first.against else ""
        commit = f"commit {first.commit}" if first.commit else "files that are in no repository"
        lines.append(f'<p class="of">Of {_html_text(commit + against)}, on {_html_text(first.on)}.</p>')
    lines += [f'<p class="gate">gate {_html_text(f"{one.gate}: {one.stack}: {one.because}")}</p>' for one in gates]
    for one in reviews:
        lines += _html_stack(one)
    return "\n".join([*lines, "</body></html>", ""])


def _html_stack(one: Review) -> Iterator[str]:
    yield f"<section><h2>{_html_text(verdict(one))}</h2>"
    if one.has_decisions:
        for section in sections(one):
            yield from _html_section(section)
    if rest := footnotes(one):
        yield f'<ul class="also">{"".join(f"<li>{_html_text(line)}</li>" for line in rest)}</ul>'
    if one.has_decisions:
        yield from _html_picture(one.picture)
    yield "</section>"


def _html_section(section: Section) -> Iterator[str]:
    yield f"<h3>{_html_text(section.title)}</h3><ul>"
    for item in section.items:
        details = "".join(f"<li>{_html_text(line)}</li>" for line in item.details)
        below = f"<ul>{details}</ul>" if details else ""
        urgent = ' class="urgent"' if item.urgent else ""
        yield f"<li{urgent}><span>{_html_text(item.words)}</span>{below}</li>"
    yield "</ul>"


def _html_picture(shown: Picture) -> Iterator[str]:
    if not (drawn := svg(shown)):
        return
    yield f"<figure>{drawn}<figcaption>Who may reach what</figcaption></figure>"
    rows = "".join(
        f"<tr><td>{_html_text(edge.source)}</td><td>{_html_text(edge.target)}</td><td>{_html_text(edge.how)}</td></tr>"
        for edge in shown.edges
    )
    yield f"<details><summary>the same as a table</summary><table><tr><th>from</th><th>to</th><th>how</th></tr>{rows}"
    yield "</table></details>"


def _html_text(text: str) -> str:
    return escape(terminal(" ".join(text.split())), quote=True)


FORMS: Mapping[str, Callable[[Sequence[Review], Sequence[Tripped]], str]] = {
    "text": text,
    "markdown": markdown,
    "html": page,
    "json": as_json,
    "sarif": sarif,
}
