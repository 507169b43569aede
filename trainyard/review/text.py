# SPDX-License-Identifier: Apache-2.0
"""Reviews as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from launcher.escaping import terminal
from trainyard.review.gates import Tripped
from trainyard.review.model import Review
from trainyard.review.sections import also, sections, verdict


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
