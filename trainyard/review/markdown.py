# SPDX-License-Identifier: Apache-2.0
"""Reviews as one pull request comment of at most 60,000 characters: what does not fit is counted, never cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from schemas.name_suggestions import count_noun
from trainyard.markup import escape_markdown, escape_mermaid
from trainyard.review.gates import TrippedGate
from trainyard.review.model import NO_REPOSITORY, Picture, RepositoryReview, Review
from trainyard.review.sections import (
    SHOWN,
    Item,
    Section,
    repository_sections,
    repository_verdict,
    review_footnotes,
    review_sections,
    review_verdict,
)

# GitHub takes 65,536. A workflow may add something.
COMMENT_LIMIT = 60_000
COMMENT_MARK = "<!-- trainyard review -->"
_ALL_OF_IT = "The review as HTML and JSON has all of them in full."
# Writes the lines of one stack.
_Form = Callable[[Review], Iterator[str]]


def review_markdown(
    reviews: Sequence[Review], gates: Sequence[TrippedGate], repository: RepositoryReview = NO_REPOSITORY
) -> str:
    """The most detailed form that fits. If there is nothing to decide: one line without MARK.

    A workflow finds its comment again by MARK, and writes no comment without it.
    """
    deciding = [review for review in reviews if review.has_decisions]
    if not gates and not deciding and not repository_verdict(repository):
        if len(reviews) == 1:
            return f"{escape_markdown(review_verdict(reviews[0]))}\n"
        return f"nothing to decide: {count_noun(len(reviews), 'stack')}\n"
    head = list(_comment_head(reviews, gates, repository))
    forms: list[_Form] = [
        lambda review: chain(_section_lines(review, details=True), _picture_lines(review.picture)),
        lambda review: _section_lines(review, details=True),
        lambda review: _section_lines(review, details=False),
        _counts_only,
    ]
    for form in forms:
        beside = _lines_of_sections(repository_sections(repository), details=form is not _counts_only)
        folded = (line for review in deciding for line in _collapsible_stack(review, form, len(deciding) > 1))
        lines, fit = _lines_within_limit(chain(head, beside, folded), COMMENT_LIMIT)
        if fit:
            return "\n".join(lines).rstrip() + "\n"
    # As many verdicts as fit, and the number of the others.
    lines, fit = _lines_within_limit(head, COMMENT_LIMIT - 100 - len(_ALL_OF_IT))
    if not fit:
        lines.append(f"- {count_noun(len(head) - len(lines), 'more line')}")
    return "\n".join([*lines, "", _ALL_OF_IT]).rstrip() + "\n"


def _lines_within_limit(lines: Iterable[str], limit: int) -> tuple[list[str], bool]:
    """The first lines that fit, and whether all do. Lines after those are not computed."""
    fitting: list[str] = []
    for line in lines:
        limit -= len(line) + 1
        if limit < 0:
            return fitting, False
        fitting.append(line)
    return fitting, True


def _comment_head(
    reviews: Sequence[Review], gates: Sequence[TrippedGate], repository: RepositoryReview
) -> Iterator[str]:
    yield COMMENT_MARK
    if verdict := repository_verdict(repository):
        yield f"**{escape_markdown(verdict)}**"
        yield ""
    if len(reviews) == 1:
        yield f"**{escape_markdown(review_verdict(reviews[0]))}**"
    else:
        deciding = [review for review in reviews if review.has_decisions]
        yield f"**{count_noun(len(deciding), 'stack')} of {len(reviews)} to decide about**"
        yield ""
        yield from (f"- {escape_markdown(review_verdict(review))}" for review in deciding)
        if len(deciding) < len(reviews):
            yield f"- nothing to decide: {count_noun(len(reviews) - len(deciding), 'stack')}"
    yield ""
    if reviews:
        first = reviews[0]
        against = f", against {escape_markdown(first.against)}" if first.against else ""
        commit = f"commit {escape_markdown(first.commit)}" if first.commit else "files that are in no repository"
        yield f"Of {commit}{against}, on {escape_markdown(first.on)}."
        yield ""
    for gate in gates:
        yield f"- **gate {escape_markdown(gate.gate)}**: {escape_markdown(gate.where)}: {escape_markdown(gate.because)}"
    if gates:
        yield ""


def _collapsible_stack(review: Review, form: _Form, titled: bool) -> Iterator[str]:
    """One stack is shown open. Several are collapsed, because their verdicts are listed above."""
    if titled:
        yield f"<details><summary>{escape_markdown(review_verdict(review))}</summary>"
        yield ""
    yield from form(review)
    if titled:
        yield "</details>"
        yield ""


def _counts_only(review: Review) -> Iterator[str]:
    for section in review_sections(review):
        urgent = [item for item in section.items if item.urgent][:SHOWN]
        yield f"- {section.title}: {count_noun(len(section.items), 'line')}; all are in the review as HTML and JSON"
        yield from (f"  - {escape_markdown(item.words)}" for item in urgent)
    yield ""


def _section_lines(review: Review, details: bool) -> Iterator[str]:
    yield from _lines_of_sections(review_sections(review), details)
    for note in review_footnotes(review):
        yield f"- {escape_markdown(note)}"
    yield ""


def _lines_of_sections(sections: Iterable[Section], details: bool) -> Iterator[str]:
    for section in sections:
        yield f"#### {section.title}"
        yield ""
        first, rest = section.items[:SHOWN], section.items[SHOWN:]
        for item in first:
            yield from _item_lines(item, details)
        if rest:
            yield ""
            yield f"<details><summary>{count_noun(len(rest), 'more line')}</summary>"
            yield ""
            for item in rest:
                yield from _item_lines(item, details)
            yield ""
            yield "</details>"
        yield ""


def _item_lines(item: Item, details: bool) -> Iterator[str]:
    words = escape_markdown(item.words)
    yield f"- **{words}**" if item.urgent else f"- {words}"
    if not details:
        return
    lines = [f"  - {escape_markdown(line)}" for line in item.details]
    if len(lines) <= SHOWN:
        yield from lines
        return
    yield from (f"  <details><summary>{count_noun(len(lines), 'line')}</summary>", "", *lines, "", "  </details>", "")


def _picture_lines(shown: Picture) -> Iterator[str]:
    if not shown.edges:
        return
    yield "<details><summary>who may reach what</summary>"
    yield ""
    yield "```mermaid"
    yield from mermaid_flowchart(shown)
    yield "```"
    yield ""
    yield "</details>"
    yield ""


def mermaid_flowchart(shown: Picture) -> Iterator[str]:
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
