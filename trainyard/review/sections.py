# SPDX-License-Identifier: Apache-2.0
"""A review in words, without markup: the verdict, then what a person must decide, the most dangerous first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import starmap

from schemas.name_suggestions import count_noun, quoted_list
from trainyard.review.access_changes import access_sentence
from trainyard.review.changes import resource_title, without_indexes
from trainyard.review.cost_items import cost_items, cost_verdict
from trainyard.review.model import (
    Access,
    Change,
    ChangeKind,
    InputChange,
    ProgramChange,
    RepositoryReview,
    Review,
    UnknownChange,
)
from trainyard.review.run_items import is_explained_by_what_runs, what_runs_items, what_runs_verdict

PROGRAM_TITLE = "Who reviews, and with which program"
# Items shown per section. Formats that can collapse text collapse the others.
SHOWN = 8
# Inputs named as the reason of a replacement, and those whose values are shown.
_PATHS = 4
_DETAILS = 12


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


def review_verdict(review: Review) -> str:
    """One line with counts."""
    outside = sum(opening.outside for opening in review.opened)
    failing, waived = (sum(remark.outcome == outcome for remark in review.pack) for outcome in ("fail", "waived"))
    every_count = [
        (review.program, f"{count_noun(len(review.program), 'setting')} of who acts or reviews"),
        (review.unknown_changes, f"{count_noun(len(review.unknown_changes), 'change')} not judged"),
        (review.opened, f"opens {len(review.opened)}" + (f" ({outside} to or from outside)" if outside else "")),
        (review.closed, f"closes {len(review.closed)}"),
        (review.hanging, f"{count_noun(len(review.hanging), 'connection')} would hang"),
        (review.gained, f"{count_noun(len(review.gained), 'right')} gained"),
        (review.lost, f"{count_noun(len(review.lost), 'right')} lost"),
        *((changes := review.that_end(kind), f"{len(changes)} {words}") for kind, words in _KINDS.items()),
        (review.lost_in_place, f"{len(review.lost_in_place)} lost in place"),
        (review.warnings, count_noun(len(review.warnings), "warning")),
        (review.what_runs, what_runs_verdict(review)),
        *((True, text) for text in cost_verdict(review)),
        (review.findings, count_noun(len(review.findings), "finding")),
        (failing, f"{failing} of the policy pack fail"),
        (waived, f"{waived} of the policy pack waived"),
    ]
    counts = [text for counted, text in every_count if counted]
    if review.failed:
        return f"{review.stack}: could not be reviewed"
    if review.refused:
        return f"{review.stack}: would be refused" + (f"; {', '.join(counts)}" if counts else "")
    if not review.judged:
        return f"{review.stack}: cannot be compared" + (f"; {', '.join(counts)}" if counts else "")
    if not review.has_decisions:
        in_place = len(review.of_kind("created", "changed"))
        rest = f"; {count_noun(in_place, 'resource')} made or changed in place" if in_place else ""
        return f"{review.stack}: nothing to decide{rest}"
    head = {"new": "new stack, ", "removed": "stack removed, "}.get(review.kind, "")
    return f"{review.stack}: {head}{', '.join(counts) or 'costs less'}"


_KINDS: Mapping[ChangeKind, str] = {
    "replaced": "replaced",
    "deleted": "deleted",
    "kept": "left in the cloud",
    "blocked": "blocked",
}


def review_sections(review: Review) -> tuple[Section, ...]:
    all_of_them = (Section(title, tuple(items_of(review))) for title, items_of in _SECTIONS)
    return tuple(section for section in all_of_them if section.items)


def review_footnotes(review: Review) -> tuple[str, ...]:
    """What needs no decision, and what is unknown."""
    lines = []
    if not review.refused and (counted := len(review.of_kind("created"))):
        lines.append(f"{count_noun(counted, 'resource')} made")
    if counted := len(review.of_kind("changed")):
        lines.append(f"{count_noun(counted, 'resource')} changed in place")
    if review.deleted_rules and not review.refused:
        rules = count_noun(len(review.deleted_rules), "rule")
        lines.append(f"{rules} deleted: what rules let through is compared as a whole")
    if review.pack_before:
        lines.append(f"{count_noun(review.pack_before, 'result')} of the policy pack as before")
    return (*lines, *(f"not known: {what}" for what in review.unjudged))


def repository_verdict(repository: RepositoryReview) -> str:
    """One line. Empty if the program was isolated, and nothing beside the stacks changes that decides about them."""
    bare = f"the program was not isolated: {repository.not_isolated}" if repository.not_isolated else ""
    changes = f"beside the stacks: changes of {', '.join(repository.titles)}" if repository.changes else ""
    return "; ".join(filter(None, (bare, changes)))


def repository_sections(repository: RepositoryReview) -> tuple[Section, ...]:
    if not repository.changes:
        return ()
    items = list(map(_program_item, repository.changes))
    if repository.other_files:
        others = count_noun(repository.other_files, "other file")
        items.append(Item(f"{others} changed, which no review is made of: such as the code of jobs"))
    return (Section(PROGRAM_TITLE, tuple(items)),)


def _program_item(change: ProgramChange) -> Item:
    return Item(change.words, change.details, True)


def _unknown_items(review: Review) -> Iterator[Item]:
    """One item for all changes that differ only in the resource's name."""
    alike: dict[tuple[object, ...], list[UnknownChange]] = {}
    for change in review.unknown_changes:
        alike.setdefault((change.type, change.kind, change.inputs), []).append(change)
    for changes in sorted(alike.values(), key=lambda changes: bool(changes[0].harmless)):
        first = changes[0]
        named = replace(first, name=quoted_list(change.name for change in changes) if len(changes) > 1 else first.name)
        details = [_input_words(given) for given in first.inputs[:_DETAILS]]
        if len(first.inputs) > _DETAILS:
            details.append(f"and {len(first.inputs) - _DETAILS} more, which the JSON has")
        if first.harmless:
            details.append(f"it can neither grant access nor open a way: {first.harmless}")
        yield Item(unknown_change_words(named), tuple(details), not first.harmless)


def unknown_change_words(change: UnknownChange) -> str:
    done = {"created": "made", "changed": "changed in place", "kept": "leaves the stack"}.get(change.kind, change.kind)
    if not change.is_known_type:
        return f"{resource_title(change.type, change.name)}: {done}; not judged: nothing is known of {change.type}"
    paths = [given.path for given in change.inputs]
    more = f" and {len(paths) - _PATHS} more" if len(paths) > _PATHS else ""
    by = "with" if change.kind == "created" else "by"
    return f"{resource_title(change.type, change.name)}: {done} {by} {', '.join(paths[:_PATHS])}{more}; not judged"


def _input_words(given: InputChange) -> str:
    if given.before and given.before == given.after:
        return f"{given.path}: {given.after}, and now another one"
    if given.before and given.after:
        return f"{given.path}: {given.before} -> {given.after}"
    return f"{given.path}: {given.after}" if given.after else f"{given.path}: no longer {given.before}"


def _passage_items(review: Review) -> Iterator[Item]:
    for hang in review.hanging:
        job = f" of job {hang.job}" if hang.job else ""
        words = f"would hang: {hang.pair[0]} to {hang.pair[1]}{job}, {hang.ports}"
        yield Item(words, (f"no rule lets it through: {hang.missing}",), True)
    for sign, openings in (("opens", review.opened), ("closes", review.closed)):
        for opening in openings:
            outside = opening.outside and sign == "opens"
            yield Item(f"{sign}: {opening.words}" + (" (outside of the stack)" if outside else ""), urgent=outside)


def _gain_items(review: Review) -> Iterator[Item]:
    for sign, permissions in (("gains", review.gained), ("loses", review.lost)):
        for access in permissions:
            first, rest = access.operations[:SHOWN], len(access.operations) - SHOWN
            more = f" and {rest} more, which the JSON has" if rest > 0 else ""
            details = (f"operations: {', '.join(first)}{more}",) if first else ()
            yield Item(f"{sign}: {permission_sentence(access, sign == 'gains')}", details, sign == "gains")


def permission_sentence(access: Access, gained: bool = True) -> str:
    return access_sentence(access.principal, access.words, access.resource, gained)


def _ending_items(review: Review) -> Iterator[Item]:
    if review.failed:
        yield _message_item(f"could not be reviewed: {review.failed}")
    if review.refused:
        yield _message_item(f"refused: {review.refused}")
    yield from map(_message_item, review.warnings)
    # One item for all changes with the same reason and the same loss.
    alike: dict[tuple[object, ...], list[Change]] = {}
    for change in (*review.that_end("blocked", "replaced", "deleted", "kept"), *review.lost_in_place):
        alike.setdefault((change.kind, change.because, change.follows, change.loss, change.type), []).append(change)
    lost_first = sorted(alike.values(), key=lambda changes: (changes[0].loss is None, bool(changes[0].follows)))
    yield from (_change_item(changes, is_explained_by_what_runs(review, changes)) for changes in lost_first)
    if review.forecast_changed and review.kind not in ("new", "removed"):
        if review.forecast.blocks:
            yield Item(f"a destroy would be blocked by {quoted_list(review.forecast.blocks)}, as they are protected")
        else:
            yield Item("nothing is protected any more: a destroy removes all of it", urgent=True)
        if review.forecast.stays:
            yield Item(f"after a destroy would stay: {quoted_list(review.forecast.stays)}")


def _message_item(text: str) -> Item:
    """An item from a message of the program: its first line, with the other lines as details."""
    first, _, rest = text.partition("\n")
    return Item(first, tuple(line.strip() for line in rest.splitlines() if line.strip()), True)


def _change_item(alike: list[Change], is_explained: bool) -> Item:
    first = alike[0]
    resources = resource_title(first.type, quoted_list(change.name for change in alike))
    words = {
        "blocked": "cannot be removed or replaced, as it is protected",
        "replaced": "replaced",
        "deleted": "deleted",
        "kept": "leaves the stack and stays in the cloud",
        "changed": "keeps less than before",
        "created": "made, and deletes what is there",
    }[first.kind]
    paths = list(dict.fromkeys(map(without_indexes, first.because)))
    more = f" and {len(paths) - _PATHS} more" if len(paths) > _PATHS else ""
    because = f" because of {', '.join(paths[:_PATHS])}{more}" if paths else ""
    because = ", as what it runs changes" if is_explained else because
    follows = f", as {first.follows} is replaced" if first.follows else ""
    details = [f"lost: {first.loss.words}"] if first.loss else []
    details += [f"to avoid it: {first.loss.avoid}"] if first.loss and first.loss.avoid else []
    urgent = first.loss is not None or first.kind == "blocked"
    return Item(f"{resources}: {words}{because}{follows}", tuple(details), urgent)


def _proof_items(review: Review) -> Iterator[Item]:
    for remark in (*(remark for remark in review.pack if remark.outcome != "waived"), *review.findings):
        place = f"{remark.place}: " if remark.place else ""
        known = "not known yet: " if remark.outcome == "unknown" else ""
        remedy = (remark.remedy,) if remark.remedy else ()
        urgent = remark.outcome == "fail" or remark.level == "error"
        yield Item(f"{remark.level} {remark.code}: {known}{place}{remark.message}", remedy, urgent)
    yield from map(Item, (*review.unproven, *review.unneeded, *review.proven))
    for remark in review.pack:
        if remark.outcome == "waived":
            details = (remark.waiver,) if remark.waiver else ()
            yield Item(f"waived: {remark.code}, {remark.place}: {remark.message}", details)


_SECTIONS: tuple[tuple[str, Callable[[Review], Iterator[Item]]], ...] = (
    (PROGRAM_TITLE, lambda review: map(_program_item, review.program)),
    ("Not judged", _unknown_items),
    ("Opens, closes", _passage_items),
    ("Gains, loses", _gain_items),
    ("Ends, is lost", _ending_items),
    ("What will run", lambda review: (Item(*item) for item in what_runs_items(review))),
    ("Costs", lambda review: starmap(Item, cost_items(review))),
    ("Proof, findings, policy", _proof_items),
)
