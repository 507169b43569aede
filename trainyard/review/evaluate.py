# SPDX-License-Identifier: Apache-2.0
"""Makes the Review of a stack from two snapshots. `ReviewPlatform` answers what depends on the platform."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from catalog.platforms import Lacks, find_capability
from components.platform.review import Network, ReviewPlatform, Snapshot
from policies import offline
from policies.settings import PolicyConfigError
from schemas.findings import Finding, dotted_path
from trainyard.review import reach, rendezvous
from trainyard.review.access import access_changes
from trainyard.review.changes import compare, forecast
from trainyard.review.costs import stack_costs
from trainyard.review.model import Access, Hanging, Opening, Remark, Review, StackKind
from trainyard.review.picture import picture
from trainyard.review.proof import proof_of

_NOT_REHEARSED = (
    "the rules and statements that this change adds were not rehearsed: give the report of "
    "`trainyard rehearse STACK --format json` as `--rehearsal`"
)


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """What all reviews of one command share. `by_engine`: what a real preview replaces, and why."""

    on: date
    commit: str = ""
    against: str = ""
    prices: Mapping[str, Any] = field(default_factory=dict)
    by_engine: Mapping[str, tuple[str, ...]] | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckFindings:
    """The findings of `check` on both sides. `file`: the stack file's path for people.

    `pack`: the configuration of the policy pack.
    """

    file: str
    before: Sequence[Finding] = ()
    after: Sequence[Finding] = ()
    pack: Mapping[str, Any] = field(default_factory=dict)


class PackConfigError(Exception):
    """The configuration of the policy pack is invalid. The message is for the user."""


def review(
    before: Snapshot,
    after: Snapshot,
    kind: StackKind,
    findings: CheckFindings,
    context: ReviewContext,
    rehearsal: Mapping[str, Any] | None = None,
) -> Review:
    if before.resources and after.resources and before.platform != after.platform:
        return _platform_change(before, after, findings, context, rehearsal)
    if _cannot_be_compared(before, after):
        return _unreadable_review(before, after, kind, findings, context)
    platform = find_capability(after.platform or before.platform, ReviewPlatform)
    platform = ReviewPlatform() if isinstance(platform, Lacks) else platform
    changes = compare(before, after, platform, context.by_engine)
    warnings = tuple(text for text in after.remarks if text not in before.remarks)
    if kind == "changed" and not changes and not warnings and before.plan == after.plan and not after.refused:
        kind = "same"
    made = replace(
        _empty_review(after, kind, findings, context),
        changes=changes,
        warnings=warnings,
        forecast=forecast(after),
        forecast_changed=forecast(before) != forecast(after),
        costs=stack_costs(after, platform, context.prices, changes),
        costs_before=stack_costs(before, platform, context.prices, ()),
        picture=picture(after if kind != "removed" else before),
    )
    made = _with_access(_with_network(made, before, after, platform), before, after, platform)
    made = _with_pack(made, before, after, findings, context)
    return _with_proof(made, before, after, platform, rehearsal)


def _empty_review(after: Snapshot, kind: StackKind, findings: CheckFindings, context: ReviewContext) -> Review:
    """The review of a stack before anything is compared."""
    return Review(
        stack=after.stack,
        file=findings.file,
        platform=after.platform,
        kind=kind,
        commit=context.commit,
        against=context.against,
        on=context.on.isoformat(),
        refused=after.refused,
        findings=_new_findings(findings),
        unjudged=context.remarks,
    )


def _unreadable_review(
    before: Snapshot, after: Snapshot, kind: StackKind, findings: CheckFindings, context: ReviewContext
) -> Review:
    """The review of a stack that cannot be read on one side. It must not look as if nothing changed."""
    made = replace(_empty_review(after, kind, findings, context), judged=False, picture=picture(after))
    if after.refused:
        return made
    why = f"nothing of this stack was compared: its state before this change cannot be read\n{before.refused}"
    return replace(made, warnings=(why,))


def _platform_change(
    before: Snapshot,
    after: Snapshot,
    findings: CheckFindings,
    context: ReviewContext,
    rehearsal: Mapping[str, Any] | None,
) -> Review:
    """The review of a stack that changes its platform: everything on the old one is removed, everything on the new one
    is created. Each platform judges its own side, because it cannot read the other's resources."""
    left = review(before, Snapshot(before.stack, before.platform, {}, ()), "removed", findings, context)
    made = review(Snapshot(after.stack, after.platform, {}, ()), after, "new", findings, context, rehearsal)
    return replace(
        made,
        kind="changed",
        closed=left.closed,
        lost=left.lost,
        changes=tuple(sorted((*left.changes, *made.changes), key=lambda one: (one.type, one.name, one.kind))),
        warnings=tuple(text for text in after.remarks if text not in before.remarks),
        forecast_changed=left.forecast_changed or made.forecast_changed,
        costs_before=left.costs_before,
        unjudged=tuple(dict.fromkeys((*left.unjudged, *made.unjudged))),
    )


def _cannot_be_compared(before: Snapshot, after: Snapshot) -> bool:
    """Whether a side could not be recorded at all. Then nothing is compared, and the review says so."""
    return any(one.refused and not one.resources for one in (before, after))


def _with_network(made: Review, before: Snapshot, after: Snapshot, platform: ReviewPlatform) -> Review:
    then, now = (platform.network(one) if one.resources else Network() for one in (before, after))
    found = reach.changed(then, now)
    opened = [Opening(reach.words(one), reach.is_outside(one, now)) for one in found.opened]
    closed = [Opening(reach.words(one), reach.is_outside(one, then)) for one in found.closed]
    opened += [Opening(way, True) for way in found.ways_opened]
    closed += [Opening(way, True) for way in found.ways_closed]
    made = replace(made, opened=_outside_first(opened), closed=_outside_first(closed))
    if now.unjudged and after.resources:
        return _unjudged(made, f"network: {now.unjudged}")
    if not after.resources:
        return made
    rows = (Hanging(one.job, _pair(one.pair), _ports(one.ports), one.missing) for one in rendezvous.hanging(after, now))
    return replace(made, hanging=tuple(rows))


def _outside_first(found: Iterable[Opening]) -> tuple[Opening, ...]:
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (not one.outside, one.words)))


def _pair(pair: str) -> tuple[str, str]:
    source, _, target = pair.partition(" -> ")
    return source, target


def _ports(ports: tuple[int, int]) -> str:
    first, last = ports
    return f"port {first}" if first == last else f"ports {first}-{last}"


def _with_access(made: Review, before: Snapshot, after: Snapshot, platform: ReviewPlatform) -> Review:
    then, now = platform.abilities((before, after)) or (frozenset(), frozenset())
    found = [
        (one.gained, Access(one.principal, one.words, one.resource, tuple(one.operations)))
        for one in access_changes(then, now, platform)
    ]
    return replace(
        made,
        gained=tuple(access for gained, access in found if gained),
        lost=tuple(access for gained, access in found if not gained),
    )


def _with_pack(
    made: Review, before: Snapshot, after: Snapshot, findings: CheckFindings, context: ReviewContext
) -> Review:
    """Adds the new results of the policy pack. Results that both sides have are only counted.

    A failure whose waiver has ended is always added: it was waived when the other side was made.
    """
    if not after.resources:
        return made
    then, now = (_pack_rows(one, findings.pack, context.on) for one in (before, after))
    new = [row for row in now if row not in then or (row.outcome == "fail" and row.waiver)]
    return replace(made, pack=tuple(new), pack_before=len(now) - len(new))


def _pack_rows(side: Snapshot, config: Mapping[str, Any], on: date) -> list[Remark]:
    if not side.resources:
        return []
    try:
        results = offline.verdicts(side, config, on)
    except PolicyConfigError as wrong:
        raise PackConfigError(f"--policy-config: {wrong}") from None
    rows = [
        Remark(one.rule, one.level, one.resource, one.because, one.remedy, outcome=one.outcome, waiver=one.waiver)
        for one in results
    ]
    order = {"fail": 0, "unknown": 1, "waived": 2}
    return sorted(rows, key=lambda one: (order.get(one.outcome, 3), one.code, one.place))


def _with_proof(
    made: Review, before: Snapshot, after: Snapshot, platform: ReviewPlatform, rehearsal: Mapping[str, Any] | None
) -> Review:
    if not made.opened and not made.gained:
        return made
    if rehearsal is None:
        return replace(made, unproven=(_NOT_REHEARSED,))
    found = proof_of(before, after, platform, rehearsal)
    return replace(made, proven=found.proven, unproven=found.unproven, unneeded=found.unneeded)


def _new_findings(findings: CheckFindings) -> tuple[Remark, ...]:
    """The findings that the other side does not have. Another line number is no difference."""
    known = {(one.code, one.path, one.message) for one in findings.before}
    return tuple(
        Remark(one.code, one.severity, dotted_path(one.path), one.message, one.remedy, one.line)
        for one in findings.after
        if (one.code, one.path, one.message) not in known
    )


def _unjudged(made: Review, what: str) -> Review:
    return replace(made, unjudged=(*made.unjudged, what))
