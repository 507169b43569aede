# SPDX-License-Identifier: Apache-2.0
"""A review in words, without markup: the verdict, then what a person must decide, the most dangerous first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from schemas.name_suggestions import count_noun, quoted_list
from trainyard.review.access import access_sentence
from trainyard.review.changes import called
from trainyard.review.model import Access, Change, ChangeKind, JobCost, Remark, Review

# Items shown per section. Formats that can collapse text collapse the others.
SHOWN = 8
# Inputs named as the reason of a replacement.
_PATHS = 4
_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a section, and its details. `urgent`: it must be seen first."""

    words: str
    details: tuple[str, ...] = ()
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    items: tuple[Item, ...]


def verdict(one: Review) -> str:
    """One line with counts."""
    counts = list(_counts(one))
    if one.refused:
        return f"{one.stack}: would be refused" + (f"; {', '.join(counts)}" if counts else "")
    if not one.judged:
        return f"{one.stack}: cannot be compared" + (f"; {', '.join(counts)}" if counts else "")
    if not one.has_decisions:
        in_place = len(one.of_kind("created", "changed"))
        rest = f"; {count_noun(in_place, 'resource')} made or changed in place" if in_place else ""
        return f"{one.stack}: nothing to decide{rest}"
    head = {"new": "new stack, ", "removed": "stack removed, "}.get(one.kind, "")
    return f"{one.stack}: {head}{', '.join(counts) or 'changed costs'}"


def _counts(one: Review) -> Iterator[str]:
    outside = sum(opening.outside for opening in one.opened)
    failing, waived = (sum(row.outcome == outcome for row in one.pack) for outcome in ("fail", "waived"))
    rows = [
        (one.opened, f"opens {len(one.opened)}" + (f" ({outside} to or from outside)" if outside else "")),
        (one.closed, f"closes {len(one.closed)}"),
        (one.hanging, f"{count_noun(len(one.hanging), 'connection')} would hang"),
        (one.gained, f"{count_noun(len(one.gained), 'right')} gained"),
        (one.lost, f"{count_noun(len(one.lost), 'right')} lost"),
        *((found := one.of_kind(kind), f"{len(found)} {words}") for kind, words in _KINDS.items()),
        (one.warnings, count_noun(len(one.warnings), "warning")),
        (one.costs.starts, _starts(one)),
        (one.findings, count_noun(len(one.findings), "finding")),
        (failing, f"{failing} of the policy pack fail"),
        (waived, f"{waived} of the policy pack waived"),
    ]
    return (words for some, words in rows if some)


def _starts(one: Review) -> str:
    most = money(one.costs.usd_starting)
    return f"starts {count_noun(one.costs.starts, 'run')} for " + (f"at most {most}" if most else "an unknown cost")


_KINDS: Mapping[ChangeKind, str] = {
    "replaced": "replaced",
    "deleted": "deleted",
    "kept": "left in the cloud",
    "blocked": "blocked",
}


def money(dollars: float | None) -> str:
    return "" if dollars is None else f"${dollars:,.2f}"


def hours(number: float | None, what: str) -> str:
    return f"unknown {what}s" if number is None else f"{number:,.1f} {what}s"


def sections(one: Review) -> tuple[Section, ...]:
    made = (Section(title, tuple(of(one))) for title, of in _SECTIONS)
    return tuple(section for section in made if section.items)


def footnotes(one: Review) -> tuple[str, ...]:
    """What needs no decision, and what is unknown."""
    lines = []
    if not one.refused and (counted := len(one.of_kind("created"))):
        lines.append(f"{count_noun(counted, 'resource')} made")
    if counted := len(one.of_kind("changed")):
        lines.append(f"{count_noun(counted, 'resource')} changed in place")
    if one.pack_before:
        lines.append(f"{count_noun(one.pack_before, 'result')} of the policy pack as before")
    return (*lines, *(f"not known: {what}" for what in one.unjudged))


def _passages(one: Review) -> Iterator[Item]:
    for hang in one.hanging:
        job = f" of job {hang.job}" if hang.job else ""
        words = f"would hang: {hang.pair[0]} to {hang.pair[1]}{job}, {hang.ports}"
        yield Item(words, (f"no rule lets it through: {hang.missing}",), True)
    for sign, openings in (("opens", one.opened), ("closes", one.closed)):
        for opening in openings:
            outside = opening.outside and sign == "opens"
            yield Item(f"{sign}: {opening.words}" + (" (outside of the stack)" if outside else ""), urgent=outside)


def _access(one: Review) -> Iterator[Item]:
    for sign, found in (("gains", one.gained), ("loses", one.lost)):
        for access in found:
            yield _access_item(sign, access)


def _access_item(sign: str, access: Access) -> Item:
    first, rest = access.operations[:SHOWN], len(access.operations) - SHOWN
    more = f" and {rest} more, which the JSON has" if rest > 0 else ""
    details = (f"operations: {', '.join(first)}{more}",) if first else ()
    return Item(f"{sign}: {sentence(access, sign == 'gains')}", details, sign == "gains")


def sentence(access: Access, gained: bool = True) -> str:
    return access_sentence(access.principal, access.words, access.resource, gained)


def _endings(one: Review) -> Iterator[Item]:
    if one.refused:
        yield _message_item(f"refused: {one.refused}")
    yield from map(_message_item, one.warnings)
    yield from _grouped(one.of_kind("blocked", "replaced", "deleted", "kept"))
    if one.forecast_changed and one.kind not in ("new", "removed"):
        yield from _forecast(one)


def _message_item(text: str) -> Item:
    """An item from a message of the program: its first line, with the other lines as details."""
    first, _, rest = text.partition("\n")
    return Item(first, tuple(line.strip() for line in rest.splitlines() if line.strip()), True)


def _grouped(changes: Iterable[Change]) -> Iterator[Item]:
    """One item for all changes with the same reason and the same loss."""
    groups: dict[tuple[object, ...], list[Change]] = {}
    for one in changes:
        groups.setdefault((one.kind, one.because, one.follows, one.loss, one.type), []).append(one)
    ordered = sorted(groups.values(), key=lambda group: (group[0].loss is None, bool(group[0].follows)))
    for group in ordered:
        yield _change_item(group)


def _change_item(group: list[Change]) -> Item:
    one = group[0]
    names = called(one.type, quoted_list(change.name for change in group))
    words = {
        "blocked": "cannot be removed or replaced, as it is protected",
        "replaced": "replaced",
        "deleted": "deleted",
        "kept": "leaves the stack and stays in the cloud",
    }[one.kind]
    because = f" because of {_short(one.because)}" if one.because else ""
    follows = f", as {one.follows} is replaced" if one.follows else ""
    details = [f"lost: {one.loss.words}"] if one.loss else []
    details += [f"to avoid it: {one.loss.avoid}"] if one.loss and one.loss.avoid else []
    return Item(f"{names}: {words}{because}{follows}", tuple(details), one.loss is not None or one.kind == "blocked")


def _short(paths: Iterable[str]) -> str:
    """The paths without list indexes, which do not help a reader."""
    named = list(dict.fromkeys(_INDEX.sub("", path) for path in paths))
    rest = f" and {len(named) - _PATHS} more" if len(named) > _PATHS else ""
    return ", ".join(named[:_PATHS]) + rest


def _forecast(one: Review) -> Iterator[Item]:
    if one.forecast.blocks:
        yield Item(f"a destroy would be blocked by {quoted_list(one.forecast.blocks)}, as they are protected")
    else:
        yield Item("nothing is protected any more: a destroy removes all of it", urgent=True)
    if one.forecast.stays:
        yield Item(f"after a destroy would stay: {quoted_list(one.forecast.stays)}")


def _costs(one: Review) -> Iterator[Item]:
    if one.costs == one.costs_before and not one.costs.starts:
        return
    before = {job.job: job for job in one.costs_before.jobs}
    for job in one.costs.jobs:
        earlier = before.pop(job.job, None)
        if job.starts or earlier is None or _comparable_cost(job) != _comparable_cost(earlier):
            yield _job_item(job)
    for name in before:
        yield Item(f"job {name}: no longer costs anything")
    for row in one.costs.standing:
        if row not in one.costs_before.standing:
            price = f"{money(row.usd_per_hour)} an hour" if row.usd_per_hour is not None else "unknown"
            yield Item(f"{row.what}: {price} while the stack is up", _source(row.source))
    total, earlier_total = one.costs.usd_per_hour, one.costs_before.usd_per_hour
    if total != earlier_total and one.kind != "removed":
        shown, was = (f"{money(each)} an hour" if each is not None else "unknown" for each in (total, earlier_total))
        yield Item(f"while the stack is up: {shown}" + (f" (before: {was})" if one.kind != "new" else ""))


def _comparable_cost(job: JobCost) -> tuple[object, ...]:
    return job.shape, job.nodes, job.hours, job.usd_per_hour, job.stays, job.idle_hours


def _job_item(job: JobCost) -> Item:
    shape = f"{count_noun(job.nodes, 'node')} of {job.shape}"
    if job.hours is None:
        most = "the time of a run is unlimited"
    else:
        gpus = f", {hours(job.gpu_hours, 'GPU-hour')}" if job.gpu_hours != 0 else ""
        price = f", {money(job.usd_per_run)}" if job.usd_per_run is not None else ", price unknown"
        most = f"a run takes at most {hours(job.node_hours, 'node-hour')}{gpus}{price}, retries included"
    details = list(_source(job.source))
    if job.stays:
        idle = (
            f"{job.idle_hours:,.1f} hours after the last run" if job.idle_hours is not None else "never by themselves"
        )
        price = f"{money(job.usd_per_hour)} an hour" if job.usd_per_hour is not None else "at an unknown price"
        details.append(f"its machines stay between runs, {price}, and stop {idle}")
    starts = f"; {count_noun(job.starts, 'run')} would start" if job.starts else ""
    return Item(f"job {job.job}: {shape}; {most}{starts}", tuple(details))


def _source(source: str) -> tuple[str, ...]:
    return (f"price: {source}",) if source else ()


def _proof(one: Review) -> Iterator[Item]:
    for row in one.pack:
        if row.outcome != "waived":
            yield _remark_item(row)
    for row in one.findings:
        yield _remark_item(row)
    for text in (*one.unproven, *one.unneeded, *one.proven):
        yield Item(text)
    for row in one.pack:
        if row.outcome == "waived":
            yield Item(f"waived: {row.code}, {row.place}: {row.message}", (row.waiver,) if row.waiver else ())


def _remark_item(row: Remark) -> Item:
    place = f"{row.place}: " if row.place else ""
    known = "not known yet: " if row.outcome == "unknown" else ""
    urgent = row.outcome == "fail" or row.level == "error"
    return Item(f"{row.level} {row.code}: {known}{place}{row.message}", (row.remedy,) if row.remedy else (), urgent)


_SECTIONS: tuple[tuple[str, Callable[[Review], Iterator[Item]]], ...] = (
    ("Opens, closes", _passages),
    ("Gains, loses", _access),
    ("Ends, is lost", _endings),
    ("Costs", _costs),
    ("Proof, findings, policy", _proof),
)
