# SPDX-License-Identifier: Apache-2.0
"""The forms of a review, by their names in `--format`: text, HTML, JSON and SARIF are made here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Protocol
from urllib.parse import quote

from catalog.version import VERSION
from components.plan.show import json_text, to_plain_values
from launcher.escaping import terminal_line
from schemas.name_suggestions import count_noun
from schemas.project_file import PROJECT_FILE
from trainyard.markup import escape_sarif
from trainyard.review.gates import TrippedGate
from trainyard.review.markdown import review_markdown
from trainyard.review.model import NO_REPOSITORY, Picture, ProgramChange, RepositoryReview, Review
from trainyard.review.picture import picture_svg
from trainyard.review.sections import (
    PROGRAM_TITLE,
    SHOWN,
    Section,
    repository_sections,
    repository_verdict,
    review_footnotes,
    review_sections,
    review_verdict,
)

FORMAT = 1
_LEVELS = {"error": "error", "warning": "warning", "note": "note", "mandatory": "error", "advisory": "warning"}
# Section of a review -> its rule in code scanning, and the title of the rule.
_RULES = {
    PROGRAM_TITLE: ("review/program", "Who acts, who reviews, or with which program changes"),
    "Not judged": ("review/not-judged", "Something changes that the review does not judge"),
    "Opens, closes": ("review/passages", "Who can reach what changes"),
    "Gains, loses": ("review/access", "Who may do what changes"),
    "Ends, is lost": ("review/lost", "Something ends, is replaced or is lost"),
    "What will run": ("review/what-runs", "What the nodes execute changes"),
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


def review_json(
    reviews: Sequence[Review], gates: Sequence[TrippedGate], repository: RepositoryReview = NO_REPOSITORY
) -> str:
    """The document that docs/review.md and schemas/review.schema.json describe."""
    documents = [
        {"verdict": review_verdict(review), "decisions": review.has_decisions, **to_plain_values(review)}
        for review in reviews
    ]
    beside = {
        "verdict": repository_verdict(repository),
        "decisions": bool(repository.changes),
        **to_plain_values(repository),
    }
    tripped = [to_plain_values(gate) for gate in gates]
    return json_text({"format": FORMAT, "repository": beside, "reviews": documents, "gates": tripped})


def review_sarif(
    reviews: Sequence[Review], gates: Sequence[TrippedGate], repository: RepositoryReview = NO_REPOSITORY
) -> str:
    """SARIF 2.1.0: new findings, results of the policy pack, and urgent decisions."""
    results = [_sarif_result_of_program(change) for change in repository.changes]
    results += [result for review in reviews for result in _sarif_results(review)]
    titles = dict(_RULES.values())
    rules = [
        {"id": code, "shortDescription": {"text": escape_sarif(titles[code])}} if code in titles else {"id": code}
        for code in sorted({str(result["ruleId"]) for result in results})
    ]
    driver = {"name": "trainyard review", "semanticVersion": VERSION, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2)


def _sarif_results(review: Review) -> Iterator[dict[str, Any]]:
    for section in review_sections(review):
        if section.title in _RULES:
            for item in (item for item in section.items if item.urgent):
                message = ". ".join((item.words, *item.details))
                yield _sarif_result(review.file, _RULES[section.title][0], "warning", message, 1)
    for remark in (*review.findings, *review.pack):
        level = "note" if remark.outcome in ("waived", "unknown") else _LEVELS.get(remark.level, "warning")
        place = f"{remark.place}: " if remark.place else ""
        message = f"{place}{remark.message}. {remark.remedy}".strip()
        yield _sarif_result(review.file, remark.code, level, message, remark.line or 1)


def _sarif_result_of_program(change: ProgramChange) -> dict[str, Any]:
    message = ". ".join((change.words, *change.details))
    return _sarif_result(next(iter(change.files), PROJECT_FILE), _RULES[PROGRAM_TITLE][0], "warning", message, 1)


def _sarif_result(file: str, rule: str, level: str, message: str, line: int) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": quote(os.fsencode(file))}, "region": {"startLine": line}}
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": escape_sarif(message)},
        "locations": [{"physicalLocation": place}],
    }


def review_text(
    reviews: Sequence[Review], gates: Sequence[TrippedGate], repository: RepositoryReview = NO_REPOSITORY
) -> str:
    """A verdict for each stack first, then the stacks that need a decision."""
    lines = [terminal_line(verdict) for verdict in (repository_verdict(repository),) if verdict]
    lines += [terminal_line(review_verdict(review)) for review in reviews]
    for section in repository_sections(repository):
        lines += _text_section(section)
    for review in reviews:
        if not review.has_decisions:
            continue
        shown, notes = review_sections(review), review_footnotes(review)
        if len(reviews) > 1 and (shown or notes):
            lines += ["", terminal_line(review.stack)]
        for section in shown:
            lines += _text_section(section)
        if notes:
            lines += ["", *(f"  {terminal_line(note)}" for note in notes)]
    if gates:
        lines += ["", *(terminal_line(f"gate {gate.gate}: {gate.where}: {gate.because}") for gate in gates)]
    return "\n".join(lines)


def _text_section(section: Section) -> Iterator[str]:
    yield ""
    yield section.title
    for item in section.items:
        yield f"  {'!' if item.urgent else '-'} {terminal_line(item.words)}"
        yield from (f"      {terminal_line(detail)}" for detail in item.details)


def review_page(
    reviews: Sequence[Review], gates: Sequence[TrippedGate], repository: RepositoryReview = NO_REPOSITORY
) -> str:
    """One HTML file, without scripts or other files: light and dark, on a phone and on paper."""
    deciding = sum(review.has_decisions for review in reviews)
    title = review_verdict(reviews[0]) if len(reviews) == 1 else f"{deciding} of {len(reviews)} stacks to decide about"
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{_html_text(title)}</title><style>\n{_STYLE}</style></head><body>",
        f"<h1>{_html_text(title)}</h1>",
    ]
    if reviews:
        first = reviews[0]
        against = f", against {first.against}" if first.against else ""
        commit = f"commit {first.commit}" if first.commit else "files that are in no repository"
        lines.append(f'<p class="of">Of {_html_text(commit + against)}, on {_html_text(first.on)}.</p>')
    lines += [f'<p class="gate">gate {_html_text(f"{gate.gate}: {gate.where}: {gate.because}")}</p>' for gate in gates]
    if verdict := repository_verdict(repository):
        lines.append(f"<section><h2>{_html_text(verdict)}</h2>")
        lines += [line for section in repository_sections(repository) for line in _html_section(section)]
        lines.append("</section>")
    for review in reviews:
        lines.append(f"<section><h2>{_html_text(review_verdict(review))}</h2>")
        if review.has_decisions:
            lines += [line for section in review_sections(review) for line in _html_section(section)]
        if notes := review_footnotes(review):
            lines.append(f'<ul class="also">{"".join(f"<li>{_html_text(note)}</li>" for note in notes)}</ul>')
        if review.has_decisions:
            lines += _html_picture(review.picture)
        lines.append("</section>")
    return "\n".join([*lines, "</body></html>", ""])


def _html_section(section: Section) -> Iterator[str]:
    yield f"<h3>{_html_text(section.title)}</h3><ul>"
    for item in section.items:
        details = "".join(f"<li>{_html_text(line)}</li>" for line in item.details)
        below = f"<ul>{details}</ul>" if details else ""
        if len(item.details) > SHOWN:
            below = f"<details><summary>{count_noun(len(item.details), 'line')}</summary>{below}</details>"
        urgent = ' class="urgent"' if item.urgent else ""
        yield f"<li{urgent}><span>{_html_text(item.words)}</span>{below}</li>"
    yield "</ul>"


def _html_picture(shown: Picture) -> Iterator[str]:
    if not (drawn := picture_svg(shown)):
        return
    yield f"<figure>{drawn}<figcaption>Who may reach what</figcaption></figure>"
    rows = "".join(
        f"<tr><td>{_html_text(edge.source)}</td><td>{_html_text(edge.target)}</td><td>{_html_text(edge.how)}</td></tr>"
        for edge in shown.edges
    )
    yield f"<details><summary>the same as a table</summary><table><tr><th>from</th><th>to</th><th>how</th></tr>{rows}"
    yield "</table></details>"


def _html_text(text: str) -> str:
    return escape(terminal_line(" ".join(text.split())), quote=True)


class ReviewForm(Protocol):
    def __call__(
        self, reviews: Sequence[Review], gates: Sequence[TrippedGate], repository: RepositoryReview = NO_REPOSITORY
    ) -> str: ...


FORMS: Mapping[str, ReviewForm] = {
    "text": review_text,
    "markdown": review_markdown,
    "html": review_page,
    "json": review_json,
    "sarif": review_sarif,
}
