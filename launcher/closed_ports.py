# SPDX-License-Identifier: Apache-2.0
"""What nodes found closed, in one sentence: who cannot reach whom on which ports, and the rule to add. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Dict, Set, Tuple

from launcher.document import Launch
from launcher.expects import Expects

# A label and a port -> pairs of ranks of which the first cannot reach the second.
ClosedPorts = Dict[Tuple[str, int], Set[Tuple[int, int]]]
_MOST_NAMES = 4
# Object names have a limited length.
_MOST_RANGES = 30


def pack_ranks(ranks: Iterable[int]) -> str:
    """Ranks as a short text: `0-3.7`. Many ranges are cut: the sentence shows only a few names."""
    ranges: list[list[int]] = []
    for rank in sorted(ranks):
        if ranges and rank == ranges[-1][1] + 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    return ".".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_MOST_RANGES])


def unpack_ranks(text: str) -> list[int]:
    """The ranks in such a text; none if it is something else."""
    ranks: list[int] = []
    for part in text.split("."):
        first, _, last = part.partition("-")
        last = last or first
        if not (first.isdigit() and last.isdigit()) or len(last) > 4:
            return []
        ranks += range(int(first), int(last) + 1)
    return ranks


def node_name(launch: Launch, rank: int) -> str:
    """A node's name for people: `worker-2`."""
    return launch.label(rank).partition("(")[2].rstrip(")")


def closed_sentence(launch: Launch, expects: Expects, closed: ClosedPorts) -> str:
    """Names what is closed, and the remedy."""
    why = {one.label: one.why for one in expects.connections}
    labels: dict[str, dict[int, set[tuple[int, int]]]] = {}
    for (label, port), pairs in sorted(closed.items()):
        labels.setdefault(label, {})[port] = pairs
    parts: list[str] = []
    ranges: dict[str, None] = {}
    for label, by_port in labels.items():
        ports = _ports_text(launch, label, sorted(by_port))
        ranges[ports.rpartition(" of ")[2]] = None
        reason = f": {why[label]}" if why.get(label) else ""
        parts.append(f"{_who_text(launch, set().union(*by_port.values()))} on TCP {ports} ({label}{reason})")
    words, ports_to_open = f"{'; '.join(parts)}.", _list_text([*ranges])
    if expects.place:
        return f"{words} Add to {expects.place}: ingress and egress TCP {ports_to_open}, {expects.peer}"
    return f"{words} Ask those who run this network to let TCP {ports_to_open} through between these nodes"


def _ports_text(launch: Launch, label: str, tested: Sequence[int]) -> str:
    """The whole range if both of its ends are closed, otherwise what was tested."""
    whole = launch.ports[label].range
    if whole is not None and set(tested) >= set(whole):
        return str(whole[0]) if whole[0] == whole[1] else f"{whole[0]}-{whole[1]}"
    shown = ", ".join(map(str, tested[:_MOST_NAMES])) + ("…" if len(tested) > _MOST_NAMES else "")
    return shown if whole is None else f"{shown} of {whole[0]}-{whole[1]}"


def _who_text(launch: Launch, pairs: set[tuple[int, int]]) -> str:
    """`worker-0 and worker-1 cannot reach main-0`. Nodes with the same targets are named together."""
    targets: dict[int, set[int]] = {}
    for source, target in pairs:
        targets.setdefault(source, set()).add(target)
    everybody = set(targets) | {rank for reached in targets.values() for rank in reached}
    if set(targets) == everybody and all(reached == everybody - {source} for source, reached in targets.items()):
        return f"{_names_text(launch, sorted(everybody))} cannot reach one another"
    groups: dict[tuple[int, ...], list[int]] = {}
    for source in sorted(targets):
        groups.setdefault(tuple(sorted(targets[source])), []).append(source)
    shown = [
        f"{_names_text(launch, sources)} cannot reach {_names_text(launch, reached)}"
        for reached, sources in list(groups.items())[:_MOST_NAMES]
    ]
    more = len(groups) - len(shown)
    return ", ".join([*shown, *([f"and so on for {more} more nodes"] if more else [])])


def _names_text(launch: Launch, ranks: Sequence[int]) -> str:
    names = [node_name(launch, rank) for rank in ranks[:_MOST_NAMES]]
    more = len(ranks) - len(names)
    return _list_text([*names, *([f"{more} more"] if more else [])])


def _list_text(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
