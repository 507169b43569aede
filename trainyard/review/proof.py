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
from trainyard.review.access import access_changes
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


def proof_of(
    before: Snapshot, after: Snapshot, platform: ReviewPlatform, rehearsal: Mapping[str, Any]
) -> RehearsalProof:
    """Judges only the change: what both sides allow needs no proof."""
    rows = [*_of_network(before, after, platform, rehearsal), *_of_access(before, after, platform, rehearsal)]
    return RehearsalProof(
        **{kind: tuple(f"{sign}: {words}" for name, words in rows if name == kind) for kind, sign in _SIGNS.items()}
    )


def _of_network(
    before: Snapshot, after: Snapshot, platform: ReviewPlatform, rehearsal: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    then, now = (platform.network(one) if one.resources else Network() for one in (before, after))
    found = reach.changed(then, now)
    enforced = rehearsal.get("firewall") == _ENFORCED
    for passage in found.opened:
        words = reach.words(passage)
        if not enforced or (now.nodes and passage.where != now.nodes):
            why = "no rules were in force in the rehearsal" if not enforced else "a rehearsal counts only at nodes"
            yield "unproven", f"{words}: {why}"
            continue
        needed = [
            str(flow["pair"])
            for flow in rehearsal["flows"]
            if _allows(passage, flow, now) and not any(_allows(one, flow, then) for one in then.passages)
        ]
        if needed:
            yield "proven", f"{words}: {_listed(needed)}"
        elif any(_covers(rule, passage) for rule in rehearsal["rules"]):
            yield "unneeded", f"{words}: no connection of the rehearsal needed it"
        else:
            yield "unproven", f"{words}: the rehearsal had no such rule"
    for way in found.ways_opened:
        yield "unproven", f"{way}: a rehearsal has no routes"


def _allows(passage: Passage, flow: Mapping[str, Any], network: Network) -> bool:
    """Whether a passage allows a connection of the rehearsal."""
    return (
        passage.direction == flow["direction"]
        and _is_protocol(passage.protocol, str(flow["protocol"]))
        and passage.ports[0] <= int(flow["port"]) <= passage.ports[1]
        and _is_peer(passage, flow, network)
    )


def _is_protocol(protocol: str, wanted: str) -> bool:
    but = protocol.removeprefix("all but ")
    return wanted not in but.split(", ") if but != protocol else protocol in (EVERY_PROTOCOL, wanted)


def _is_peer(passage: Passage, flow: Mapping[str, Any], network: Network) -> bool:
    """Whether the flow's peer is the passage's. Of a name, a rehearsal knows only whether it is a node."""
    block = block_of(passage.peer)
    if block is None:
        return (passage.peer in network.addresses) == bool(flow["toNode"])
    address = ip_address(flow["peer"])
    blocks = [one for text in passage.but if (one := block_of(text)) is not None]
    return address in block and not any(address in one for one in blocks)


def _covers(rule: Mapping[str, Any], passage: Passage) -> bool:
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


def _of_access(
    before: Snapshot, after: Snapshot, platform: ReviewPlatform, rehearsal: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    known = platform.statements(before)
    granted = [text for text in platform.statements(after) if text not in known]
    without = platform.without_statements(after, frozenset(granted))
    then, now, rest = platform.abilities((before, after, without)) or (frozenset(), frozenset(), frozenset())
    if now - then:
        # Without a new ability, new statements only repeat others.
        for text in dict.fromkeys(granted):
            pattern = _pattern(text)
            rows = [row for row in rehearsal["statements"] if pattern.fullmatch(str(row["statement"]))]
            yield _of_statement(text, rows)
    for change in access_changes(then, rest, platform):
        if change.gained:
            yield "unproven", f"{change.sentence}: no new statement grants it, so a rehearsal cannot prove it"


def _pattern(text: str) -> re.Pattern[str]:
    """Matches the statement in the rehearsal. Values that only a cloud knows, such as an account id, may differ."""
    parts = _NOT_KNOWN.split(text)
    return re.compile(r"[^:\"'/\s]+".join(map(re.escape, parts)))


def _of_statement(text: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    operations = [str(name) for row in rows if row.get("calls") for name in row.get("operations") or ()]
    if operations or any(row.get("calls") for row in rows):
        return "proven", f"{text}: {_listed(operations)}"
    if rows:
        return "unneeded", f"{text}: no call of the rehearsal needed it"
    return "unproven", f"{text}: the rehearsal had no such statement"


def _listed(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else ""
    return f"{', '.join(distinct[:_SHOWN])}{more}"
