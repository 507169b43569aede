# SPDX-License-Identifier: Apache-2.0
"""Verdicts about connections between nodes: what launchers tested before training, and what firewalls dropped. Pure."""

from __future__ import annotations

import re

from trainyard.why.facts import Facts, certainty_of
from trainyard.why.model import EvidenceKind, Kind, Verdict
from trainyard.why.stack_groups import find_odd_ranks

# Words of launcher/closed_ports.py and launcher/preflight.py.
_CLOSED, _ADD = "cannot reach", "Add to "
_KINDS: tuple[tuple[str, Kind, str], ...] = (
    ("is in use by another program", "port in use", "End the program that has the port, or give the job other `ports`"),
    ("Another run (", "port in use", "Give the job other `ports`, or end the other run"),
    (
        " planned",
        "machine",
        "Start the run again with a higher `attempt`: another machine may have all of its accelerators",
    ),
    ("of the image finds no", "interface", "Build the image with the library of the machines' network, or plan others"),
    ("its own folder", "node", "Start the run again with a higher `attempt`, on another machine"),
)
_PORTS = re.compile(r"\b(\d{1,5})(?:-(\d{1,5}))?\b")
_PAIR = re.compile(r"(.{1,200}) -> (.{1,200}) (\w{1,10}) (\d{1,5})")


def judge_findings(facts: Facts) -> Verdict | None:
    """Before training, the launchers found something that keeps the run from working."""
    if not facts.findings or not _matters(facts):
        return None
    closed = [finding for finding in facts.findings if _CLOSED in finding]
    if not closed:
        words = " ".join(facts.findings)
        kind, remedy = next(((kind, remedy) for text, kind, remedy in _KINDS if text in words), ("node", ""))
        ranks = tuple(
            rank for rank, node in facts.nodes.items() if re.search(rf"\b{re.escape(node.run.name)}\b", words)
        )
        return Verdict(kind, words, certainty_of("launcher"), ranks, remedy=remedy, look="the node that it names")
    words = " ".join(closed)
    sentence, _, rule = words.partition(_ADD)
    agreeing = [drop for drop in facts.dropped if _names_drop(sentence, drop.pair)]
    kinds: list[EvidenceKind] = ["launcher", *[facts.dropped_kind for _ in agreeing]]
    return Verdict(
        "closed port",
        words,
        certainty_of(*kinds),
        _ranks_in(facts, sentence),
        rule=rule,
        remedy=f"{_ADD}{rule}" if rule else sentence.rpartition(". ")[2],
        look="the rules between the nodes",
    )


def _matters(facts: Facts) -> bool:
    """Whether a finding explains the end: it is the reason that was reported, or ranks did not reach one another."""
    if any(finding in reason for finding in facts.findings for reason in facts.reasons.values()):
        return True
    return any(_CLOSED in finding for finding in facts.findings) and (facts.blames_a_peer or facts.stalled)


def judge_dropped(facts: Facts) -> Verdict | None:
    """Packets between nodes were dropped, and the run fails or waits as if it lacked a connection.

    A run whose failure has another reason may have lost packets that nobody needed.
    """
    pairs = [(drop, found) for drop in facts.dropped if (found := _PAIR.fullmatch(drop.pair))]
    names = {node.run.name: rank for rank, node in facts.nodes.items()}
    between = [(drop, found) for drop, found in pairs if found[1] in names and found[2] in names]
    if not between:
        return None
    first = facts.cause.rank if facts.cause is not None else None
    waits = facts.blames_a_peer or facts.stalled
    progressed = any(status.get("progress") is not None for status in facts.statuses.values())
    # Where all connections of the plan were open, dropped packets are of others, which training may not need.
    was_open = facts.tested_connections > 0
    if not waits and (facts.cause is not None or progressed or was_open):
        return None
    about = [(drop, found) for drop, found in between if first in (names[found[1]], names[found[2]])] or between
    drop, found = max(about, key=lambda one: one[0].packets)
    ranks = tuple(sorted({names[found[1]], names[found[2]]}))
    if was_open and find_odd_ranks(facts.groups, facts.victims - {stack.rank for stack in facts.stacks}) is not None:
        return None
    agrees = facts.blames_a_peer and first in ranks and not was_open
    same = sorted({int(other[4]) for _, other in between if (other[1], other[2]) == (found[1], found[2])})
    ports = ", ".join(map(str, same[:4])) + ("…" if len(same) > 4 else "")
    return Verdict(
        "closed port",
        f"{found[1]} cannot reach {found[2]} on {found[3].upper()} {ports}: {drop.missing}",
        certainty_of(facts.dropped_kind, "launcher") if agrees else "likely",
        ranks,
        rule=f"ingress and egress {found[3].upper()} {ports} between the nodes",
        remedy=f"Add a rule that lets {found[3].upper()} {ports} from {found[1]} through to {found[2]}: {drop.missing}",
        look="the rules between the nodes, and the ports of the plan (`trainyard plan STACK`)",
    )


def _names_drop(sentence: str, pair: str) -> bool:
    """Whether the sentence is about the pair and port of dropped packets."""
    found = _PAIR.fullmatch(pair)
    if found is None:
        return False
    port = int(found[4])
    ranges = [(int(low), int(high or low)) for low, high in _PORTS.findall(sentence)]
    about = "cannot reach one another" in sentence or (found[1] in sentence and found[2] in sentence)
    return about and any(low <= port <= high for low, high in ranges)


def _ranks_in(facts: Facts, sentence: str) -> tuple[int, ...]:
    return tuple(
        rank for rank, node in sorted(facts.nodes.items()) if re.search(rf"\b{re.escape(node.run.name)}\b", sentence)
    )
