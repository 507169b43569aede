# SPDX-License-Identifier: Apache-2.0
"""Compares what a change opens and grants with a rehearsal: needed there, not needed, or not part of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from components.platform.review import EVERY_PORT, UNKNOWN, Network, Passage, ReviewPlatform, Snapshot
from components.values.protocols import EVERY_PROTOCOL
from trainyard.review import reach
from trainyard.review.access_changes import compare_abilities
from trainyard.review.ranges import block_of, is_within

_ENFORCED = "enforced"
_SHOWN = 3
_NOT_KNOWN = re.compile(re.escape(UNKNOWN) + r"[\w ]*(?=[:\"/])")
_SIGNS = {"proven": "proven", "unproven": "not proven", "unneeded": "not needed"}


class RehearsalError(Exception):
    """The file is not a report of a rehearsal of this stack. The message is for the user."""


@dataclass(frozen=True, slots=True)
class RehearsalProof:
    """In words. `unneeded`: the rehearsal had it, and would have passed without it."""

    proven: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    unneeded: tuple[str, ...] = ()


def read_rehearsal(file: Path, stack: str) -> Mapping[str, Any]:
    try:
        report = json.loads(file.read_text("utf-8"))
        there = report["stack"]
        for key in ("rules", "statements", "flows"):
            if not all(isinstance(row, Mapping) for row in report[key]):
                raise TypeError
    except OSError as problem:
        raise RehearsalError(f"{file}: {problem.strerror}") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise RehearsalError(
            f"{file} is not a report of this release's `trainyard rehearse STACK --format json`"
        ) from None
    if there != stack:
        raise RehearsalError(f"{file} is about the stack {there}, not {stack}")
    return report  # type: ignore[no-any-return]


def compare_with_rehearsal(
    before: Snapshot, after: Snapshot, platform: ReviewPlatform, rehearsal: Mapping[str, Any]
) -> RehearsalProof:
    """Judges only the change: what both sides allow needs no proof."""
    judged = [
        *_proof_of_network(before, after, platform, rehearsal),
        *_proof_of_access(before, after, platform, rehearsal),
    ]
    return RehearsalProof(
        **{
            outcome: tuple(f"{sign}: {text}" for of, text in judged if of == outcome)
            for outcome, sign in _SIGNS.items()
        }
    )


def _proof_of_network(
    before: Snapshot, after: Snapshot, platform: ReviewPlatform, rehearsal: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    then, now = (platform.network(side) if side.resources else Network() for side in (before, after))
    found = reach.compare_networks(then, now)
    enforced = rehearsal.get("firewall") == _ENFORCED
    for passage in found.opened:
        words = reach.passage_words(passage)
        if not enforced or (now.nodes and passage.where != now.nodes):
            why = "no rules were in force in the rehearsal" if not enforced else "a rehearsal counts only at nodes"
            yield "unproven", f"{words}: {why}"
            continue
        needed = [
            str(flow["pair"])
            for flow in rehearsal["flows"]
            if _allows_flow(passage, flow, now)
            and not any(_allows_flow(earlier, flow, then) for earlier in then.passages)
        ]
        if needed:
            yield "proven", f"{words}: {_list_distinct(needed)}"
        elif any(_rule_covers_passage(rule, passage) for rule in rehearsal["rules"]):
            yield "unneeded", f"{words}: no connection of the rehearsal needed it"
        else:
            yield "unproven", f"{words}: the rehearsal had no such rule"
    for way in found.ways_opened:
        yield "unproven", f"{way}: a rehearsal has no routes"


def _allows_flow(passage: Passage, flow: Mapping[str, Any], network: Network) -> bool:
    """Whether a passage allows a connection of the rehearsal."""
    if passage.direction != flow["direction"] or not passage.ports[0] <= int(flow["port"]) <= passage.ports[1]:
        return False
    protocol = str(flow["protocol"])
    excluded = passage.protocol.removeprefix("all but ")
    if excluded != passage.protocol and protocol in excluded.split(", "):
        return False
    if excluded == passage.protocol and passage.protocol not in (EVERY_PROTOCOL, protocol):
        return False
    block = block_of(passage.peer)
    if block is None:
        # Of a name, a rehearsal knows only whether it is a node.
        return (passage.peer in network.addresses) == bool(flow["toNode"])
    address = ip_address(flow["peer"])
    holes = [hole for text in passage.but if (hole := block_of(text)) is not None]
    return address in block and not any(address in hole for hole in holes)


def _rule_covers_passage(rule: Mapping[str, Any], passage: Passage) -> bool:
    """Whether a rule of the rehearsal is at least as wide as the passage."""
    ports = rule["ports"] or EVERY_PORT
    block, wanted = block_of(str(rule["peer"])), block_of(passage.peer)
    peers = block is None if wanted is None else block is not None and is_within(wanted, (), (block,))
    return (
        rule["direction"] == passage.direction
        and rule["protocol"] in (EVERY_PROTOCOL, passage.protocol)
        and ports[0] <= passage.ports[0]
        and passage.ports[1] <= ports[1]
        and peers
    )


def _proof_of_access(
    before: Snapshot, after: Snapshot, platform: ReviewPlatform, rehearsal: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    known = platform.statements(before)
    granted = [statement for statement in platform.statements(after) if statement not in known]
    without = platform.without_statements(after, frozenset(granted))
    then, now, rest = platform.abilities((before, after, without)) or (frozenset(), frozenset(), frozenset())
    # Without a new ability, new statements only repeat others.
    for statement in dict.fromkeys(granted) if now - then else ():
        # Values that only a cloud knows, such as an account id, may differ in the rehearsal.
        pattern = re.compile(r"[^:\"'/\s]+".join(map(re.escape, _NOT_KNOWN.split(statement))))
        rehearsed = [row for row in rehearsal["statements"] if pattern.fullmatch(str(row["statement"]))]
        used = [row for row in rehearsed if row.get("calls")]
        if used:
            operations = [str(name) for row in used for name in row.get("operations") or ()]
            yield "proven", f"{statement}: {_list_distinct(operations)}"
        elif rehearsed:
            yield "unneeded", f"{statement}: no call of the rehearsal needed it"
        else:
            yield "unproven", f"{statement}: the rehearsal had no such statement"
    for change in compare_abilities(then, rest, platform):
        if change.gained:
            yield "unproven", f"{change.sentence}: no new statement grants it, so a rehearsal cannot prove it"


def _list_distinct(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else ""
    return f"{', '.join(distinct[:_SHOWN])}{more}"
