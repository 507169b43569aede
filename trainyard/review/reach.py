# SPDX-License-Identifier: Apache-2.0
"""Which passages a change opens and closes: the difference of two sets of rules, by what they allow.

Rules that are split, merged, reordered or renamed allow the same, so they make no difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from components.platform.review import EVERY_PORT, Network, Passage
from components.values.protocols import EVERY_PROTOCOL, protocol_title
from trainyard.review.ranges import (
    Block,
    BlockNode,
    Range,
    Ranges,
    block_of,
    cells,
    described,
    is_within,
    minus,
    tree,
    union,
)

_BUT = "all but "
# Every protocol that no rule names.
_OTHERS = ""
_ANYWHERE = ("0.0.0.0/0", "::/0")
_CODES = 256
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


def changed(before: Network, after: Network) -> Reach:
    then, now = _ways(before), _ways(after)
    return Reach(
        opened=beyond(after.passages, before.passages),
        closed=beyond(before.passages, after.passages),
        ways_opened=tuple(way for way in now if way not in then),
        ways_closed=tuple(way for way in then if way not in now),
    )


def _ways(network: Network) -> tuple[str, ...]:
    public = (f"{where}: nodes can have public addresses" for where in network.public)
    return tuple(dict.fromkeys((*network.ways, *public)))


def beyond(these: Iterable[Passage], those: Iterable[Passage]) -> tuple[Passage, ...]:
    """What `these` allow and `those` do not, in the widest possible passages."""
    sides: dict[tuple[str, str], tuple[list[Passage], list[Passage]]] = defaultdict(lambda: ([], []))
    for side, passages in enumerate((these, those)):
        for one in passages:
            sides[one.where, one.direction][side].append(one)
    found: set[Passage] = set()
    for (where, direction), (mine, others) in sides.items():
        for (protocol, source, ports), peer, but in _differences(mine, others):
            found.add(Passage(where, direction, protocol, peer, ports, source, but))  # type: ignore[arg-type]
    return tuple(sorted(found))


def _differences(these: list[Passage], those: list[Passage]) -> Iterator[tuple[_Item, str, tuple[str, ...]]]:
    if not these:
        return
    both = (*these, *those)
    classes = (*dict.fromkeys(name for one in both for name in _named(one.protocol)), _OTHERS)
    sources = cells(one.source_ports for one in both)
    of_peer = _by_peer(these, classes, sources), _by_peer(those, classes, sources)
    for name in (peer for peer in of_peer[0] if block_of(peer) is None):
        for item in _items(_subtract(of_peer[0][name], of_peer[1].get(name, {})), classes, sources):
            yield item, name, ()
    yield from _of_blocks(of_peer, classes, sources)


def _named(protocol: str) -> tuple[str, ...]:
    if protocol.startswith(_BUT):
        return tuple(protocol.removeprefix(_BUT).split(", "))
    return () if protocol == EVERY_PROTOCOL else (protocol,)


def _by_peer(passages: Iterable[Passage], classes: Iterable[str], sources: tuple[Range, ...]) -> dict[str, _Open]:
    """What the passages open to each peer. Blocks are normalized, and their excluded parts removed."""
    found: dict[str, dict[tuple[str, Range], list[Range]]] = defaultdict(lambda: defaultdict(list))
    for one in passages:
        for peer in _peers(one):
            for protocol in _covered(one.protocol, classes):
                for source in sources:
                    if one.source_ports[0] <= source[0] and source[1] <= one.source_ports[1]:
                        found[peer][protocol, source].append(one.ports)
    return {peer: {key: union(ranges) for key, ranges in rows.items()} for peer, rows in found.items()}


def _peers(passage: Passage) -> Iterator[str]:
    block = block_of(passage.peer)
    if block is None or not passage.but:
        yield passage.peer if block is None else str(block)
        return
    left: list[Block] = [block]
    for text in passage.but:
        hole = block_of(text)
        left = [piece for one in left for piece in _cut_out(one, hole)]
    yield from map(str, left)


def _cut_out(block: Block, hole: Block | None) -> Iterable[Block]:
    """The block without `hole`. Blocks of different IP versions have nothing in common."""
    if isinstance(block, IPv4Network) and isinstance(hole, IPv4Network):
        return block.address_exclude(hole) if hole.subnet_of(block) else () if block.subnet_of(hole) else (block,)
    if isinstance(block, IPv6Network) and isinstance(hole, IPv6Network):
        return block.address_exclude(hole) if hole.subnet_of(block) else () if block.subnet_of(hole) else (block,)
    return (block,)


def _covered(protocol: str, classes: Iterable[str]) -> Iterator[str]:
    named = _named(protocol)
    for one in classes:
        if protocol == EVERY_PROTOCOL or (one in named) != protocol.startswith(_BUT):
            yield one


def _subtract(these: _Open, those: _Open) -> _Open:
    left = {key: minus(ranges, those.get(key, ())) for key, ranges in these.items()}
    return {key: ranges for key, ranges in left.items() if ranges}


def _items(opened: _Open, classes: tuple[str, ...], sources: tuple[Range, ...]) -> list[_Item]:
    """As few rows as possible: joins equal source ports first, then equal protocols."""
    by_row: dict[tuple[Range, Range], list[str]] = defaultdict(list)
    for protocol in classes:
        for source, ports in _of_sources(opened, protocol, sources):
            by_row[source, ports].append(protocol)
    items: list[_Item] = []
    for (source, ports), protocols in by_row.items():
        names = [_joined(protocols, classes)] if _OTHERS in protocols else protocols
        items += [(name, source, ports) for name in names]
    return items


def _of_sources(opened: _Open, protocol: str, sources: tuple[Range, ...]) -> Iterator[tuple[Range, Range]]:
    by_ports: dict[Range, list[Range]] = defaultdict(list)
    for source in sources:
        for ports in opened.get((protocol, source), ()):
            by_ports[ports].append(source)
    for ports, wanted in by_ports.items():
        yield from ((source, ports) for source in union(wanted))


def _joined(protocols: list[str], classes: tuple[str, ...]) -> str:
    others = [name for name in classes if name not in protocols]
    return _BUT + ", ".join(sorted(others)) if others else EVERY_PROTOCOL


def _of_blocks(
    of_peer: tuple[dict[str, _Open], dict[str, _Open]], classes: tuple[str, ...], sources: tuple[Range, ...]
) -> Iterator[tuple[_Item, str, tuple[str, ...]]]:
    nodes = tree(block for rows in of_peer for peer in rows if (block := block_of(peer)) is not None)
    mine, others = (_inherited(nodes, rows) for rows in of_peer)
    items = {
        id(node): frozenset(_items(_subtract(mine[id(node)], others[id(node)]), classes, sources)) for node in nodes
    }
    for node in reversed(nodes):
        if node.whole:
            items[id(node)] = frozenset.intersection(*(items[id(one)] for one in node.below))
    chosen: dict[_Item, set[int]] = defaultdict(set)
    for node in nodes:
        for item in items[id(node)]:
            chosen[item].add(id(node))
    for item, wanted in chosen.items():
        for block, but in described(nodes, wanted):
            yield item, str(block), tuple(map(str, but))


def _inherited(nodes: list[BlockNode], rows: Mapping[str, _Open]) -> dict[int, _Open]:
    """What is open to each block, by its own rules and those of the blocks around it."""
    found: dict[int, _Open] = {}
    for node in nodes:
        above: _Open = found[id(node.above)] if node.above else {}
        own = rows.get(str(node.block), {})
        if not own:
            found[id(node)] = above
            continue
        found[id(node)] = {
            key: union((*above.get(key, ()), *own.get(key, ()))) for key in dict.fromkeys((*above, *own))
        }
    return found


def is_outside(passage: Passage, network: Network) -> bool:
    """Whether the peer of a passage is, or may be, outside of the stack."""
    block = block_of(passage.peer)
    if block is None:
        return passage.peer not in network.inside
    inside = [one for text in network.inside if (one := block_of(text)) is not None]
    but = [one for text in passage.but if (one := block_of(text)) is not None]
    return not is_within(block, but, inside)


def words(passage: Passage) -> str:
    """`TCP 22 into the nodes, from anywhere (0.0.0.0/0)`."""
    what = _what(passage)
    if passage.source_ports != EVERY_PORT:
        what += f" from source {_ports(passage.source_ports)}"
    peer = f"anywhere ({passage.peer})" if passage.peer in _ANYWHERE else passage.peer
    if passage.but:
        peer += f" but {', '.join(passage.but)}"
    if passage.direction == "ingress":
        return f"{what} into {passage.where}, from {peer}"
    return f"{what} out of {passage.where}, to {peer}"


def _what(passage: Passage) -> str:
    protocol, ports = passage.protocol, passage.ports
    if protocol == EVERY_PROTOCOL:
        return "every protocol"
    if protocol.startswith(_BUT):
        return f"every protocol but {', '.join(map(_word, _named(protocol)))}"
    if protocol.startswith("icmp"):
        return f"{_word(protocol)}{_kinds(ports)}"
    if ports == EVERY_PORT:
        return f"every {_word(protocol)} port" if protocol in ("tcp", "udp") else _word(protocol)
    return f"{_word(protocol)} {_numbers(ports)}"


def _kinds(ports: Range) -> str:
    (first, code), (last, end) = divmod(ports[0], _CODES), divmod(ports[1], _CODES)
    if ports == EVERY_PORT:
        return ""
    if first == last:
        codes = "" if (code, end) == (0, _CODES - 1) else f" code {_numbers((code, end))}"
        return f" type {first}{codes}"
    whole = (code, end) == (0, _CODES - 1)
    return f" types {first}-{last}" if whole else f" from type {first} code {code} to type {last} code {end}"


def _word(protocol: str) -> str:
    title = protocol_title(protocol)
    return f"protocol {title}" if title.isdigit() else title


def _ports(ports: Range) -> str:
    return f"port {ports[0]}" if ports[0] == ports[1] else f"ports {_numbers(ports)}"


def _numbers(ports: Range) -> str:
    return str(ports[0]) if ports[0] == ports[1] else f"{ports[0]}-{ports[1]}"
