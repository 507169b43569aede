# SPDX-License-Identifier: Apache-2.0
"""Reviews as one pull request comment of at most 60,000 characters: what does not fit is counted, never cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from schemas.name_suggestions import count_noun
from trainyard.markup import escape_markdown, escape_mermaid
from trainyard.review.gates import Tripped
from trainyard.review.model import Picture, Review
from trainyard.review.sections import SHOWN, Item, footnotes, sections, verdict

# GitHub takes 65,536. A workflow may add something.
LIMIT = 60_000
MARK = "<!-- trainyard review -->"
_ALL_OF_IT = "The review as HTML and JSON has all of them in full."
# Writes the lines of one stack.
_Form = Callable[[Review], Iterator[str]]


def markdown(reviews: Sequence[Review], gates: Sequence[Tripped]) -> str:
    """The most detailed form that fits. If there is nothing to decide: one line without MARK.

    A workflow finds its comment again by MARK, and writes no comment without it.
    """
    if not gates and not any(one.has_decisions for one in reviews):
        return _nothing(reviews)
    head = list(_head(reviews, gates))
    deciding = [one for one in reviews if one.has_decisions]
    forms: list[_Form] = [_whole, _without_picture, _words_only, _counts_only]
    for form in forms:
        folded = (line for one in deciding for line in _folded(one, form, len(deciding) > 1))
        if (text := _join_within_limit(chain(head, folded))) is not None:
            return text
    return _verdicts(head)


def _nothing(reviews: Sequence[Review]) -> str:
    if len(reviews) == 1:
        return f"{escape_markdown(verdict(reviews[0]))}\n"
    return f"nothing to decide: {count_noun(len(reviews), 'stack')}\n"


def _verdicts(head: Sequence[str]) -> str:
    """As many verdicts as fit, and the number of the others."""
    shown: list[str] = []
    size = len(_ALL_OF_IT)
    for number, line in enumerate(head):
        size += len(line) + 1
        if size > LIMIT - 100:
            shown.append(f"- {count_noun(len(head) - number, 'more line')}")
            break
        shown.append(line)
    return _joined([*shown, "", _ALL_OF_IT])


def _join_within_limit(lines: Iterable[str]) -> str | None:
    """The joined lines. None as soon as they are too long, so that the rest is not computed."""
    shown: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > LIMIT:
            return None
        shown.append(line)
    return _joined(shown)


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


def _head(reviews: Sequence[Review], gates: Sequence[Tripped]) -> Iterator[str]:
    yield MARK
    first = reviews[0] if reviews else None
    deciding = [one for one in reviews if one.has_decisions]
    if len(reviews) == 1:
        yield f"**{escape_markdown(verdict(reviews[0]))}**"
    else:
        yield f"**{count_noun(len(deciding), 'stack')} of {len(reviews)} to decide about**"
        yield ""
        yield from (f"- {escape_markdown(verdict(one))}" for one in deciding)
        if len(deciding) < len(reviews):
            yield f"- nothing to decide: {count_noun(len(reviews) - len(deciding), 'stack')}"
    yield ""
    if first:
        against = f", against {escape_markdown(first.against)}" if first.against else ""
        commit = f"commit {escape_markdown(first.commit)}" if first.commit else "files that are in no repository"
        yield f"Of {commit}{against}, on {escape_markdown(first.on)}."
        yield ""
    for one in gates:
        yield f"- **gate {escape_markdown(one.gate)}**: {escape_markdown(one.stack)}: {escape_markdown(one.because)}"
    if gates:
        yield ""


def _folded(one: Review, form: _Form, titled: bool) -> Iterator[str]:
    """One stack is shown open. Several are collapsed, because their verdicts are listed above."""
    if titled:
        yield f"<details><summary>{escape_markdown(verdict(one))}</summary>"
        yield ""
    yield from form(one)
    if titled:
        yield "</details>"
        yield ""


def _whole(one: Review) -> Iterator[str]:
    yield from _without_picture(one)
    yield from _picture(one.picture)


def _without_picture(one: Review) -> Iterator[str]:
    yield from _sections(one, details=True)


def _words_only(one: Review) -> Iterator[str]:
    yield from _sections(one, details=False)


def _counts_only(one: Review) -> Iterator[str]:
    for section in sections(one):
        urgent = [item for item in section.items if item.urgent][:SHOWN]
        yield f"- {section.title}: {count_noun(len(section.items), 'line')}; all are in the review as HTML and JSON"
        yield from (f"  - {escape_markdown(item.words)}" for item in urgent)
    yield ""


def _sections(one: Review, details: bool) -> Iterator[str]:
    for section in sections(one):
        yield f"#### {section.title}"
        yield ""
        first, rest = section.items[:SHOWN], section.items[SHOWN:]
        for item in first:
            yield from _item(item, details)
        if rest:
            yield ""
            yield f"<details><summary>{count_noun(len(rest), 'more line')}</summary>"
            yield ""
            for item in rest:
                yield from _item(item, details)
            yield ""
            yield "</details>"
        yield ""
    for line in footnotes(one):
        yield f"- {escape_markdown(line)}"
    yield ""


def _item(item: Item, details: bool) -> Iterator[str]:
    words = escape_markdown(item.words)
    yield f"- **{words}**" if item.urgent else f"- {words}"
    if details:
        yield from (f"  - {escape_markdown(line)}" for line in item.details)


def _picture(shown: Picture) -> Iterator[str]:
    if not shown.edges:
        return
    yield "<details><summary>who may reach what</summary>"
    yield ""
    yield "```mermaid"
    yield from flowchart(shown)
    yield "```"
    yield ""
    yield "</details>"
    yield ""


def flowchart(shown: Picture) -> Iterator[str]:
    """Names appear only in quoted labels, where characters of Mermaid's markup are written as numbers."""
    ids = {name: f"n{number}" for number, name in enumerate((*shown.people, *shown.roles, *shown.places))}
    yield "flowchart LR"
    yield from (f'  {ids[name]}(["{escape_mermaid(name)}"])' for name in shown.people)
    yield f'  subgraph s0["{escape_mermaid(shown.subnet)}"]'
    yield from (f'    {ids[name]}["{escape_mermaid(name)}"]' for name in shown.roles)
    yield "  end"
    yield from (f'  {ids[name]}[("{escape_mermaid(name)}")]' for name in shown.places)
    for edge in shown.edges:
        yield f'  {ids[edge.source]} -->|"{escape_mermaid(edge.how)}"| {ids[edge.target]}'
