# SPDX-License-Identifier: Apache-2.0
"""Which passages a change opens and closes: the difference of two sets of rules, by what they allow.

Rules that are split, merged, reordered or renamed allow the same, so they make no difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from itertools import product
from typing import Literal

from components.platform.review import EVERY_PORT, Network, Passage
from components.values.protocols import EVERY_PROTOCOL, protocol_title
from trainyard.review.ranges import (
    Block,
    BlockNode,
    Range,
    Ranges,
    block_of,
    build_block_tree,
    cut_at_bounds,
    describe_blocks,
    is_within,
    subtract_ranges,
    union_ranges,
)

_BUT = "all but "
# Every protocol that no rule names.
_OTHERS = ""
_ANYWHERE = ("0.0.0.0/0", "::/0")
_CODES = 256
Direction = Literal["ingress", "egress"]
# (protocol, source ports) -> ports
_Open = Mapping[tuple[str, Range], Ranges]
# What one peer may send: a protocol as a passage has it, source ports, ports.
_Item = tuple[str, Range, Range]


@dataclass(frozen=True, slots=True)
class Reach:
    """The difference of two networks. `ways`: routes into or out of them, and public addresses of nodes, in words."""

    opened: tuple[Passage, ...] = ()
    closed: tuple[Passage, ...] = ()
    ways_opened: tuple[str, ...] = ()
    ways_closed: tuple[str, ...] = ()


def compare_networks(before: Network, after: Network) -> Reach:
    then, now = _ways_of_network(before), _ways_of_network(after)
    return Reach(
        opened=find_passages_beyond(after.passages, before.passages),
        closed=find_passages_beyond(before.passages, after.passages),
        ways_opened=tuple(way for way in now if way not in then),
        ways_closed=tuple(way for way in then if way not in now),
    )


def _ways_of_network(network: Network) -> tuple[str, ...]:
    public = (f"{where}: nodes can have public addresses" for where in network.public)
    return tuple(dict.fromkeys((*network.ways, *public)))


def find_passages_beyond(these: Iterable[Passage], those: Iterable[Passage]) -> tuple[Passage, ...]:
    """What `these` allow and `those` do not, in the widest possible passages."""
    sides: dict[tuple[str, Direction], tuple[list[Passage], list[Passage]]] = defaultdict(lambda: ([], []))
    for side, passages in enumerate((these, those)):
        for passage in passages:
            sides[passage.where, passage.direction][side].append(passage)
    found: set[Passage] = set()
    for (where, direction), (mine, others) in sides.items():
        if not mine:
            continue
        both = (*mine, *others)
        classes = (*dict.fromkeys(name for passage in both for name in _named_protocols(passage.protocol)), _OTHERS)
        sources = cut_at_bounds(passage.source_ports for passage in both)
        of_peer = _open_by_peer(mine, classes, sources), _open_by_peer(others, classes, sources)
        for peer in (peer for peer in of_peer[0] if block_of(peer) is None):
            for protocol, source, ports in _merge_open_ports(
                _subtract_open(of_peer[0][peer], of_peer[1].get(peer, {})), classes, sources
            ):
                found.add(Passage(where, direction, protocol, peer, ports, source))
        for (protocol, source, ports), peer, but in _differences_of_blocks(of_peer, classes, sources):
            found.add(Passage(where, direction, protocol, peer, ports, source, but))
    return tuple(sorted(found))


def _named_protocols(protocol: str) -> tuple[str, ...]:
    if protocol.startswith(_BUT):
        return tuple(protocol.removeprefix(_BUT).split(", "))
    return () if protocol == EVERY_PROTOCOL else (protocol,)


def _open_by_peer(passages: Iterable[Passage], classes: Iterable[str], sources: tuple[Range, ...]) -> dict[str, _Open]:
    """What the passages open to each peer. Blocks are normalized, and their excluded parts removed."""
    found: dict[str, dict[tuple[str, Range], list[Range]]] = defaultdict(lambda: defaultdict(list))
    for passage in passages:
        if passage.protocol == EVERY_PROTOCOL:
            protocols = list(classes)
        else:
            named, excluded = _named_protocols(passage.protocol), passage.protocol.startswith(_BUT)
            protocols = [protocol for protocol in classes if (protocol in named) != excluded]
        first, last = passage.source_ports
        covered = [source for source in sources if first <= source[0] and source[1] <= last]
        for peer, protocol, source in product(_peer_parts(passage), protocols, covered):
            found[peer][protocol, source].append(passage.ports)
    return {peer: {key: union_ranges(ranges) for key, ranges in opened.items()} for peer, opened in found.items()}


def _peer_parts(passage: Passage) -> Iterator[str]:
    block = block_of(passage.peer)
    if block is None or not passage.but:
        yield passage.peer if block is None else str(block)
        return
    left: list[Block] = [block]
    for text in passage.but:
        hole = block_of(text)
        left = [piece for part in left for piece in _cut_block(part, hole)]
    yield from map(str, left)


def _cut_block(block: Block, hole: Block | None) -> Iterable[Block]:
    """The block without `hole`. Blocks of different IP versions have nothing in common."""
    if isinstance(block, IPv4Network) and isinstance(hole, IPv4Network):
        return block.address_exclude(hole) if hole.subnet_of(block) else () if block.subnet_of(hole) else (block,)
    if isinstance(block, IPv6Network) and isinstance(hole, IPv6Network):
        return block.address_exclude(hole) if hole.subnet_of(block) else () if block.subnet_of(hole) else (block,)
    return (block,)


def _subtract_open(these: _Open, those: _Open) -> _Open:
    left = {key: subtract_ranges(ranges, those.get(key, ())) for key, ranges in these.items()}
    return {key: ranges for key, ranges in left.items() if ranges}


def _merge_open_ports(opened: _Open, classes: tuple[str, ...], sources: tuple[Range, ...]) -> list[_Item]:
    """As few rows as possible: joins equal source ports first, then equal protocols."""
    by_row: dict[tuple[Range, Range], list[str]] = defaultdict(list)
    for protocol in classes:
        by_ports: dict[Range, list[Range]] = defaultdict(list)
        for source in sources:
            for ports in opened.get((protocol, source), ()):
                by_ports[ports].append(source)
        for ports, alike in by_ports.items():
            for source in union_ranges(alike):
                by_row[source, ports].append(protocol)
    items: list[_Item] = []
    for (source, ports), protocols in by_row.items():
        if _OTHERS in protocols:
            excluded = sorted(protocol for protocol in classes if protocol not in protocols)
            protocols = [_BUT + ", ".join(excluded) if excluded else EVERY_PROTOCOL]
        items += [(protocol, source, ports) for protocol in protocols]
    return items


def _differences_of_blocks(
    of_peer: tuple[dict[str, _Open], dict[str, _Open]], classes: tuple[str, ...], sources: tuple[Range, ...]
) -> Iterator[tuple[_Item, str, tuple[str, ...]]]:
    nodes = build_block_tree(block for rows in of_peer for peer in rows if (block := block_of(peer)) is not None)
    mine, others = (_inherit_open_ports(nodes, rows) for rows in of_peer)
    items = {
        id(node): frozenset(_merge_open_ports(_subtract_open(mine[id(node)], others[id(node)]), classes, sources))
        for node in nodes
    }
    for node in reversed(nodes):
        if node.whole:
            items[id(node)] = frozenset.intersection(*(items[id(child)] for child in node.below))
    chosen: dict[_Item, set[int]] = defaultdict(set)
    for node in nodes:
        for item in items[id(node)]:
            chosen[item].add(id(node))
    for item, open_nodes in chosen.items():
        for block, but in describe_blocks(nodes, open_nodes):
            yield item, str(block), tuple(map(str, but))


def _inherit_open_ports(nodes: list[BlockNode], rows: Mapping[str, _Open]) -> dict[int, _Open]:
    """What is open to each block, by its own rules and those of the blocks around it."""
    found: dict[int, _Open] = {}
    for node in nodes:
        above: _Open = found[id(node.above)] if node.above else {}
        own = rows.get(str(node.block), {})
        if not own:
            found[id(node)] = above
            continue
        found[id(node)] = {
            key: union_ranges((*above.get(key, ()), *own.get(key, ()))) for key in dict.fromkeys((*above, *own))
        }
    return found


def is_outside(passage: Passage, network: Network) -> bool:
    """Whether the peer of a passage is, or may be, outside of the stack."""
    block = block_of(passage.peer)
    if block is None:
        return passage.peer not in network.inside
    inside = [part for text in network.inside if (part := block_of(text)) is not None]
    but = [hole for text in passage.but if (hole := block_of(text)) is not None]
    return not is_within(block, but, inside)


def passage_words(passage: Passage) -> str:
    """`TCP 22 into the nodes, from anywhere (0.0.0.0/0)`."""
    what = _traffic_words(passage)
    if passage.source_ports != EVERY_PORT:
        what += f" from source {port_words(passage.source_ports)}"
    peer = f"anywhere ({passage.peer})" if passage.peer in _ANYWHERE else passage.peer
    if passage.but:
        peer += f" but {', '.join(passage.but)}"
    if passage.direction == "ingress":
        return f"{what} into {passage.where}, from {peer}"
    return f"{what} out of {passage.where}, to {peer}"


def _traffic_words(passage: Passage) -> str:
    protocol, ports = passage.protocol, passage.ports
    if protocol == EVERY_PROTOCOL:
        return "every protocol"
    if protocol.startswith(_BUT):
        return f"every protocol but {', '.join(map(_protocol_word, _named_protocols(protocol)))}"
    if protocol.startswith("icmp"):
        return f"{_protocol_word(protocol)}{_icmp_types(ports)}"
    if ports == EVERY_PORT:
        return f"every {_protocol_word(protocol)} port" if protocol in ("tcp", "udp") else _protocol_word(protocol)
    return f"{_protocol_word(protocol)} {_range_words(ports)}"


def _icmp_types(ports: Range) -> str:
    (first, code), (last, end) = divmod(ports[0], _CODES), divmod(ports[1], _CODES)
    if ports == EVERY_PORT:
        return ""
    if first == last:
        codes = "" if (code, end) == (0, _CODES - 1) else f" code {_range_words((code, end))}"
        return f" type {first}{codes}"
    whole = (code, end) == (0, _CODES - 1)
    return f" types {first}-{last}" if whole else f" from type {first} code {code} to type {last} code {end}"


def _protocol_word(protocol: str) -> str:
    title = protocol_title(protocol)
    return f"protocol {title}" if title.isdigit() else title


def port_words(ports: Range) -> str:
    """`port 22`, `ports 80-443`."""
    return f"port {ports[0]}" if ports[0] == ports[1] else f"ports {_range_words(ports)}"


def _range_words(ports: Range) -> str:
    return str(ports[0]) if ports[0] == ports[1] else f"{ports[0]}-{ports[1]}"
