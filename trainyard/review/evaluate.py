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
from schemas.findings import Finding, dotted_path
from trainyard.review import reach, rendezvous
from trainyard.review.access_changes import compare_abilities
from trainyard.review.changes import compare_snapshots, forecast_destroy, match_resources
from trainyard.review.costs import stack_costs, with_later_names
from trainyard.review.model import Access, Hanging, Opening, Remark, Review, StackKind
from trainyard.review.picture import build_picture
from trainyard.review.proof import RehearsalProof, compare_with_rehearsal
from trainyard.review.unknown_changes import find_unknown_changes

_NOT_REHEARSED = RehearsalProof(
    unproven=(
        "the rules and statements that this change adds were not rehearsed: give the report of "
        "`trainyard rehearse STACK --format json` as `--rehearsal`",
    )
)


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """What all reviews of one command share. `by_engine`: what a real preview replaces, and why."""

    on: date
    commit: str = ""
    against: str = ""
    prices: Mapping[str, Any] = field(default_factory=dict)
    by_engine: Mapping[str, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class CheckFindings:
    """The findings of `check` on both sides. `file`: the stack file's path for people.

    `pack`: the configuration of the policy pack, which is valid. `network_beside`: the stack takes the network of
    another one, whose own review has the rules.
    """

    file: str
    before: Sequence[Finding] = ()
    after: Sequence[Finding] = ()
    pack: Mapping[str, Any] = field(default_factory=dict)
    network_beside: bool = False


def review_snapshots(
    before: Snapshot,
    after: Snapshot,
    kind: StackKind,
    findings: CheckFindings,
    context: ReviewContext,
    rehearsal: Mapping[str, Any] | None = None,
) -> Review:
    if before.resources and after.resources and before.platform != after.platform:
        return _platform_change(before, after, findings, context, rehearsal)
    empty = Review(
        stack=after.stack,
        file=findings.file,
        platform=after.platform,
        kind=kind,
        commit=context.commit,
        against=context.against,
        on=context.on.isoformat(),
        refused=after.refused,
        findings=_new_findings(findings),
        picture=build_picture(after if kind != "removed" else before),
    )
    if any(side.refused and not side.resources for side in (before, after)):
        # A side could not be recorded at all. The review must not look as if nothing changed.
        why = f"nothing of this stack was compared: its state before this change cannot be read\n{before.refused}"
        return replace(empty, judged=False, picture=build_picture(after), warnings=() if after.refused else (why,))
    platform = find_capability(after.platform or before.platform, ReviewPlatform)
    platform = ReviewPlatform() if isinstance(platform, Lacks) else platform
    changes = compare_snapshots(before, after, platform, context.by_engine)
    warnings = tuple(text for text in after.remarks if text not in before.remarks)
    if kind == "changed" and not changes and not warnings and before.plan == after.plan and not after.refused:
        kind = "same"
    then, now = platform.abilities((before, after)) or (frozenset(), frozenset())
    access = [
        (change.gained, Access(change.principal, change.words, change.resource, change.operations))
        for change in compare_abilities(then, now, platform)
    ]
    made = replace(
        _with_network(empty, before, after, platform, findings.network_beside),
        kind=kind,
        changes=changes,
        unknown_changes=tuple(find_unknown_changes(before, after, changes)),
        warnings=warnings,
        forecast=forecast_destroy(after),
        forecast_changed=forecast_destroy(before) != forecast_destroy(after),
        costs=stack_costs(after, platform, context.prices, changes),
        costs_before=with_later_names(stack_costs(before, platform, context.prices, ()), after.plan),
        gained=tuple(permission for gained, permission in access if gained),
        lost=tuple(permission for gained, permission in access if not gained),
    )
    made = _with_pack(made, before, after, findings.pack, context.on)
    if not made.opened and not made.gained:
        return made
    proof = compare_with_rehearsal(before, after, platform, rehearsal) if rehearsal is not None else _NOT_REHEARSED
    return replace(made, proven=proof.proven, unproven=proof.unproven, unneeded=proof.unneeded)


def _platform_change(
    before: Snapshot,
    after: Snapshot,
    findings: CheckFindings,
    context: ReviewContext,
    rehearsal: Mapping[str, Any] | None,
) -> Review:
    """The review of a stack that changes its platform: everything on the old one is removed, everything on the new one
    is created. Each platform judges its own side, because it cannot read the other's resources."""
    left = review_snapshots(before, Snapshot(before.stack, before.platform, {}, ()), "removed", findings, context)
    made = review_snapshots(Snapshot(after.stack, after.platform, {}, ()), after, "new", findings, context, rehearsal)
    return replace(
        made,
        kind="changed",
        closed=left.closed,
        lost=left.lost,
        unknown_changes=(*left.unknown_changes, *made.unknown_changes),
        changes=tuple(
            sorted((*left.changes, *made.changes), key=lambda change: (change.type, change.name, change.kind))
        ),
        warnings=tuple(text for text in after.remarks if text not in before.remarks),
        forecast_changed=left.forecast_changed or made.forecast_changed,
        costs_before=left.costs_before,
        unjudged=tuple(dict.fromkeys((*left.unjudged, *made.unjudged))),
    )


def _with_network(
    empty: Review, before: Snapshot, after: Snapshot, platform: ReviewPlatform, network_beside: bool
) -> Review:
    then, now = (platform.network(side) if side.resources else Network() for side in (before, after))
    found = reach.compare_networks(then, now)
    opened = [Opening(reach.passage_words(passage), reach.is_outside(passage, now)) for passage in found.opened]
    closed = [Opening(reach.passage_words(passage), reach.is_outside(passage, then)) for passage in found.closed]
    opened += [Opening(way, True) for way in found.ways_opened]
    closed += [Opening(way, True) for way in found.ways_closed]
    is_judged_beside = network_beside and not before.resources
    if now.unjudged and now.unjudged != then.unjudged and not is_judged_beside:
        # What may reach the nodes in somebody's network is not known, and may be everybody.
        opened.append(Opening(f"not known: {now.unjudged}", True))
    made = replace(empty, opened=_outside_first(opened), closed=_outside_first(closed))
    if not after.resources:
        return made
    if now.unjudged:
        return replace(made, unjudged=(*made.unjudged, f"network: {now.unjudged}"))
    hanging = []
    for hang in rendezvous.find_hanging_connections(after, now):
        source, _, target = hang.pair.partition(" -> ")
        hanging.append(Hanging(hang.job, (source, target), reach.port_words(hang.ports), hang.missing))
    return replace(made, hanging=tuple(hanging))


def _outside_first(openings: Iterable[Opening]) -> tuple[Opening, ...]:
    return tuple(sorted(dict.fromkeys(openings), key=lambda opening: (not opening.outside, opening.words)))


def _with_pack(made: Review, before: Snapshot, after: Snapshot, config: Mapping[str, Any], on: date) -> Review:
    """Adds the new results of the policy pack. Results that both sides have are only counted.

    A failure whose waiver has ended is always added: it was waived when the other side was made.
    """
    if not after.resources:
        return made
    then: list[Remark] = []
    now: list[Remark] = []
    for side, remarks in ((before, then), (after, now)):
        for result in offline.results_of_snapshot(side, config, on) if side.resources else ():
            place, because = result.resource, result.because
            outcome, waiver = result.outcome, result.waiver
            remarks.append(Remark(result.rule, result.level, place, because, result.remedy, 0, outcome, waiver))
    earlier_names = {
        pair.after.name: pair.before.name
        for pair in match_resources(before, after)[0]
        if pair.before.name != pair.after.name
    }
    new = [
        remark
        for remark in now
        if _by_earlier_names(remark, earlier_names) not in then or (remark.outcome == "fail" and remark.waiver)
    ]
    order = {"fail": 0, "unknown": 1, "waived": 2}
    new.sort(key=lambda remark: (order.get(remark.outcome, 3), remark.code, remark.place))
    return replace(made, pack=tuple(new), pack_before=len(now) - len(new))


def _by_earlier_names(remark: Remark, earlier_names: Mapping[str, str]) -> Remark:
    """The remark as it was before resources were renamed."""
    message = remark.message
    for name, earlier in earlier_names.items():
        message = message.replace(f"`{name}`", f"`{earlier}`")
    return replace(remark, place=earlier_names.get(remark.place, remark.place), message=message)


def _new_findings(findings: CheckFindings) -> tuple[Remark, ...]:
    """The findings that the other side does not have. Another line number is no difference."""
    known = {(finding.code, finding.path, finding.message) for finding in findings.before}
    return tuple(
        Remark(finding.code, finding.severity, dotted_path(finding.path), finding.message, finding.remedy, finding.line)
        for finding in findings.after
        if (finding.code, finding.path, finding.message) not in known
    )
