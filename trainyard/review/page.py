# SPDX-License-Identifier: Apache-2.0
"""Reviews as one HTML file: no script, nothing fetched; light and dark, on a phone and on paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from launcher.escaping import terminal
from trainyard.review.gates import Tripped
from trainyard.review.model import Picture, Review
from trainyard.review.picture import svg
from trainyard.review.sections import Section, also, sections, verdict

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


def page(reviews: Sequence[Review], gates: Sequence[Tripped]) -> str:
    first = reviews[0] if reviews else None
    deciding = sum(one.has_decisions for one in reviews)
    title = verdict(reviews[0]) if len(reviews) == 1 else f"{deciding} of {len(reviews)} stacks to decide about"
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{_text(title)}</title><style>\n{_STYLE}</style></head><body>",
        f"<h1>{_text(title)}</h1>",
    ]
    if first:
        against = f", against {first.against}" if first.against else ""
        commit = f"commit {first.commit}" if first.commit else "files that are in no repository"
        lines.append(f'<p class="of">Of {_text(commit + against)}, on {_text(first.on)}.</p>')
    lines += [f'<p class="gate">gate {_text(f"{one.gate}: {one.stack}: {one.because}")}</p>' for one in gates]
    for one in reviews:
        lines += _stack(one)
    return "\n".join([*lines, "</body></html>", ""])


def _stack(one: Review) -> Iterator[str]:
    yield f"<section><h2>{_text(verdict(one))}</h2>"
    if one.has_decisions:
        for section in sections(one):
            yield from _section(section)
    if rest := also(one):
        yield f'<ul class="also">{"".join(f"<li>{_text(line)}</li>" for line in rest)}</ul>'
    if one.has_decisions:
        yield from _picture(one.picture)
    yield "</section>"


def _section(section: Section) -> Iterator[str]:
    yield f"<h3>{_text(section.title)}</h3><ul>"
    for item in section.items:
        details = "".join(f"<li>{_text(line)}</li>" for line in item.details)
        below = f"<ul>{details}</ul>" if details else ""
        urgent = ' class="urgent"' if item.urgent else ""
        yield f"<li{urgent}><span>{_text(item.words)}</span>{below}</li>"
    yield "</ul>"


def _picture(shown: Picture) -> Iterator[str]:
    if not (drawn := svg(shown)):
        return
    yield f"<figure>{drawn}<figcaption>Who may reach what</figcaption></figure>"
    rows = "".join(
        f"<tr><td>{_text(edge.source)}</td><td>{_text(edge.target)}</td><td>{_text(edge.how)}</td></tr>"
        for edge in shown.edges
    )
    yield f"<details><summary>the same as a table</summary><table><tr><th>from</th><th>to</th><th>how</th></tr>{rows}"
    yield "</table></details>"


def _text(text: str) -> str:
    return escape(terminal(" ".join(text.split())), quote=True)
