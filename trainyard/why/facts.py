# SPDX-License-Identifier: Apache-2.0
"""What the judges of a run share: the evidence, read once. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from components.platform.causes import Cause, find_cause, reports_lost_peer
from components.platform.runs import UNSUCCESSFUL
from components.platform.status import NodeStatus, RunStatus
from components.platform.traffic import DroppedResult
from trainyard.why.model import OUTSIDE, Certainty, Evidence, EvidenceKind, RunEvidence
from trainyard.why.stack_groups import RankStack, StackGroup, group_stacks, groups_text, read_stack
from trainyard.why.symptoms import LAUNCHER, PLATFORM, FoundSymptom, Symptom, find_symptom
from trainyard.why.tracebacks import RaisedException, find_exception

# Evidence that is shown; programs get no more, either.
_MOST_EVIDENCE = 30
_STALLED, _IDLE, _ON_ANY_NODE = "stalled:", "idle", " on any node for "
_LATEST_LINES = 3
# Ranks of a living run that have been in the same places for this long between two requests hang.
_STUCK_SECONDS = 60.0


def certainty_of(*kinds: EvidenceKind) -> Certainty:
    """Certain needs a kind from outside of the nodes, or two kinds that agree: a node's word is its own."""
    return "certain" if set(kinds) & OUTSIDE or len(set(kinds)) > 1 else "likely"


@dataclass(frozen=True)
class Facts:
    """The evidence about a run, and what follows from each kind alone."""

    seen: RunEvidence
    symptoms: Sequence[Symptom]

    @property
    def run(self) -> RunStatus:
        return self.seen.run

    @cached_property
    def nodes(self) -> Mapping[int, NodeStatus]:
        return {node.rank: node for node in self.run.nodes}

    @cached_property
    def cause(self) -> Cause | None:
        """What the launchers say, after what the platform knows better."""
        return find_cause(self.run)

    @property
    def over(self) -> bool:
        return self.run.over

    @property
    def failed(self) -> bool:
        return any(node.run.state in UNSUCCESSFUL for node in self.run.nodes)

    @cached_property
    def blames_a_peer(self) -> bool:
        """Whether the failure that was reported first is one that another rank may have caused."""
        if self.cause is None or self.ended_early:
            return False
        raised = self.exceptions.get(self.cause.rank) if self.cause.rank is not None else None
        if raised is not None and raised.in_other_package:
            return False
        told = find_symptom([raised.words], self.symptoms) if raised is not None else None
        return reports_lost_peer(self.cause.reason) or (told is not None and told.symptom.peer)

    @cached_property
    def ended_early(self) -> bool:
        """Whether a rank ended with success while others needed it, as the launchers report it."""
        return self.cause is not None and "ended with 0 before the others" in self.cause.reason

    @cached_property
    def stalled(self) -> bool:
        """Whether the launchers ended the run because no rank did anything, or say that none does."""
        ended = any(reason.startswith(_STALLED) for reason in self.reasons.values())
        return ended or (bool(self.idle_reasons) and len(self.idle_reasons) >= len(self.statuses) - 1)

    @cached_property
    def idle(self) -> frozenset[int]:
        """The ranks whose launchers say that they do nothing, unless all do."""
        return frozenset(self.idle_reasons if len(self.idle_reasons) < len(self.statuses) else ())

    @cached_property
    def idle_everywhere(self) -> str:
        """What the launchers say of a run that does not end for it: that no node does anything. Empty if one does."""
        return next((reason for reason in self.idle_reasons.values() if _ON_ANY_NODE in reason), "")

    @cached_property
    def idle_reasons(self) -> Mapping[int, str]:
        return {rank: reason for rank, reason in self.reasons.items() if reason.startswith(_IDLE)}

    @cached_property
    def reasons(self) -> Mapping[int, str]:
        """What each launcher says about its node; empty if it says nothing."""
        return {rank: str(status.get("reason") or "") for rank, status in self.statuses.items()}

    @cached_property
    def statuses(self) -> Mapping[int, Mapping[str, Any]]:
        return {node.rank: node.launcher_status or {} for node in self.run.nodes}

    @cached_property
    def victims(self) -> frozenset[int]:
        """The ranks that say that they lost another one, or waited too long for it."""
        reporting = {rank for rank, reason in self.reasons.items() if reports_lost_peer(reason)}
        first = self.cause.rank if self.cause is not None and self.blames_a_peer else None
        return frozenset(reporting | ({first} if first is not None else set()))

    @cached_property
    def findings(self) -> tuple[str, ...]:
        """What launchers found before training."""
        found: dict[str, None] = {}
        for status in self.statuses.values():
            result = status.get("preflight")
            rows = result.get("findings") if isinstance(result, Mapping) else None
            found |= dict.fromkeys(row for row in rows if isinstance(row, str)) if isinstance(rows, list) else {}
        return tuple(found)

    @cached_property
    def tested_connections(self) -> int:
        """How many connections were tested before training, as far as statuses say."""
        tests = (status.get("preflight") for status in self.statuses.values())
        counts = (test.get("connections") for test in tests if isinstance(test, Mapping))
        return sum(count for count in counts if isinstance(count, int) and count > 0)

    @property
    def dropped(self) -> Sequence[DroppedResult]:
        return self.run.dropped or ()

    @property
    def dropped_kind(self) -> EvidenceKind:
        seen = self.run.connections
        return "flow log" if seen is not None and seen.count is None else "firewall"

    @cached_property
    def stacks(self) -> tuple[RankStack, ...]:
        request = "" if self.over else self.seen.request
        read = (read_stack(rank, status, request) for rank, status in self.statuses.items())
        return tuple(stack for stack in read if stack is not None)

    @property
    def stuck(self) -> bool:
        """Whether all ranks of a living run are where they were at a request of a while ago."""
        same = [stack.seconds for stack in self.stacks]
        return len(same) == len(self.nodes) and min(same, default=0.0) >= _STUCK_SECONDS

    @cached_property
    def succeeded(self) -> tuple[int, ...]:
        return tuple(rank for rank, status in self.statuses.items() if status.get("state") == "succeeded")

    @cached_property
    def groups(self) -> list[StackGroup]:
        return group_stacks(self.stacks)

    @cached_property
    def platform_symptoms(self) -> Mapping[int, FoundSymptom]:
        """What the platform's words about a node mean, of nodes that ended without success or have not begun."""
        rows = [row for row in self.symptoms if row.source == PLATFORM]
        wanted = {*UNSUCCESSFUL, "ACCEPTED", "CANCELING"}
        told = {node.rank: node.run.details for node in self.run.nodes if node.run.state in wanted and node.run.details}
        found = {rank: find_symptom([details], rows, PLATFORM) for rank, details in told.items()}
        return {rank: symptom for rank, symptom in found.items() if symptom is not None}

    @cached_property
    def launcher_symptoms(self) -> Mapping[int, FoundSymptom]:
        """What a launcher says that could write no status; of a living run only if it says so now."""
        told = {
            rank: lines if self.over else lines[-_LATEST_LINES:]
            for rank, lines in self.seen.launcher_lines.items()
            if self.statuses.get(rank, {}).get("state") in (None, "waiting")
        }
        found = {rank: find_symptom(lines, self.symptoms, LAUNCHER) for rank, lines in told.items()}
        return {rank: symptom for rank, symptom in found.items() if symptom is not None}

    @cached_property
    def output_symptoms(self) -> Mapping[int, FoundSymptom]:
        """What a rank's output says about itself."""
        all_open = self.tested_connections > 0 and not self.findings and not self.dropped
        rows = [row for row in self.symptoms if all_open or not row.tested]
        framework = self.seen.framework
        found = {rank: find_symptom(lines, rows, framework=framework) for rank, lines in self.seen.output.items()}
        return {rank: symptom for rank, symptom in found.items() if symptom is not None}

    @cached_property
    def exceptions(self) -> Mapping[int, RaisedException]:
        found = {rank: find_exception(lines) for rank, lines in self.seen.output.items()}
        return {rank: raised for rank, raised in found.items() if raised is not None}

    def platform_kind(self, found: FoundSymptom | None = None) -> EvidenceKind:
        """The kind of the platform's words about a node: where nodes report their own end, it is their word."""
        outside = self.seen.outside_words or (found is not None and found.symptom.outside)
        return "platform" if outside else "launcher"

    def evidence(self) -> tuple[Evidence, ...]:
        """Everything that was seen, the stronger kinds first."""
        order = ("platform", "firewall", "flow log", "launcher", "stack", "output")
        return tuple(sorted(self._evidence(), key=lambda one: order.index(one.kind))[:_MOST_EVIDENCE])

    def _evidence(self) -> Iterator[Evidence]:
        details: dict[str, list[int]] = {}
        for node in self.run.nodes:
            if words := node.run.details or (node.run.state if node.run.state in UNSUCCESSFUL else ""):
                details.setdefault(words, []).append(node.rank)
        for words, ranks in details.items():
            yield Evidence(self.platform_kind(self.platform_symptoms.get(ranks[0])), words, tuple(ranks))
        for dropped in self.dropped:
            yield Evidence(self.dropped_kind, f"{dropped.pair}, {dropped.packets} packets: {dropped.missing}")
        yield from (Evidence("launcher", f"before training: {finding}") for finding in self.findings)
        said: dict[str, list[int]] = {}
        for rank, reason in self.reasons.items():
            if reason:
                said.setdefault(reason, []).append(rank)
        yield from (Evidence("launcher", words, tuple(ranks)) for words, ranks in said.items())
        for rank, found in self.launcher_symptoms.items():
            yield Evidence("launcher", found.line, (rank,))
        if len(self.nodes) > 1 and not self.tested_connections and any(self.statuses.values()):
            yield Evidence("launcher", "no port was tested before training (docs/launcher.md says when)")
        if self.groups:
            yield Evidence("stack", groups_text(self.groups))
        for rank in sorted({*self.output_symptoms, *self.exceptions}):
            raised, symptom = self.exceptions.get(rank), self.output_symptoms.get(rank)
            where = f" ({raised.where.short})" if raised and raised.where else ""
            words = symptom.line.strip() if symptom else ""
            yield Evidence("output", f"{raised.words}{where}" if raised else words, (rank,))
