# SPDX-License-Identifier: Apache-2.0
"""Sets of port ranges and trees of address blocks, from which differences of rules are computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Any

Range = tuple[int, int]
# Sorted, and neither overlapping nor touching.
Ranges = tuple[Range, ...]
Block = IPv4Network | IPv6Network


def union_ranges(ranges: Iterable[Range]) -> Ranges:
    merged: list[Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def subtract_ranges(these: Ranges, those: Ranges) -> Ranges:
    left: list[Range] = []
    for first, last in these:
        at = first
        for start, end in those:
            if end < at or start > last:
                continue
            if start > at:
                left.append((at, start - 1))
            at = end + 1
        if at <= last:
            left.append((at, last))
    return tuple(left)


def intersect_ranges(these: Ranges, those: Ranges) -> Ranges:
    return subtract_ranges(these, subtract_ranges(these, those))


def cut_at_bounds(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Cuts the union of the ranges at all their bounds."""
    distinct = set(ranges)
    starts = sorted({first for first, _ in distinct} | {last + 1 for _, last in distinct})
    pieces = zip(starts, (start - 1 for start in starts[1:]), strict=False)
    return tuple(piece for piece in pieces if any(first <= piece[0] and piece[1] <= last for first, last in distinct))


def block_of(peer: str) -> Block | None:
    """The peer as an address block. None if the peer is a name."""
    try:
        return ip_network(peer, strict=False)
    except ValueError:
        return None


def address_range(block: Block) -> Range:
    return int(block.network_address), int(block.broadcast_address)


def is_within(block: Block, but: Iterable[Block], inside: Iterable[Block]) -> bool:
    """Whether all addresses of a block, except those in `but`, lie in `inside`."""
    same = [other for other in inside if other.version == block.version]
    without = subtract_ranges(
        (address_range(block),), union_ranges(address_range(hole) for hole in but if hole.version == block.version)
    )
    return not subtract_ranges(without, union_ranges(map(address_range, same)))


@dataclass(slots=True)
class BlockNode:
    """A block in a tree. `whole`: its children cover it, so it has no addresses of its own."""

    block: Block
    above: BlockNode | None
    below: list[BlockNode] = field(default_factory=list)
    whole: bool = False


def build_block_tree(blocks: Iterable[Block]) -> list[BlockNode]:
    """The blocks as nodes, each after the block that contains it."""
    order: Any = lambda block: (block.version, int(block.network_address), block.prefixlen)  # noqa: E731
    nodes: list[BlockNode] = []
    line: list[BlockNode] = []
    for block in sorted(set(blocks), key=order):
        while line and not is_within(block, (), (line[-1].block,)):
            line.pop()
        node = BlockNode(block, line[-1] if line else None)
        if node.above:
            node.above.below.append(node)
        nodes.append(node)
        line.append(node)
    for node in nodes:
        node.whole = sum(child.block.num_addresses for child in node.below) == node.block.num_addresses
    return nodes


def describe_blocks(nodes: Sequence[BlockNode], chosen: Set[int]) -> Iterator[tuple[Block, tuple[Block, ...]]]:
    """The addresses of the chosen nodes (by `id`) as few blocks, each with the blocks that are excluded from it.

    A node stands for the addresses that are in none of its children.
    """
    alone: list[Block] = []
    for node in nodes:
        if id(node) not in chosen or (node.above and id(node.above) in chosen):
            continue
        if but := tuple(_left_out(node, chosen)):
            yield node.block, but
        else:
            alone.append(node.block)
    for version in (4, 6):
        same: Any = [block for block in alone if block.version == version]
        yield from ((block, ()) for block in collapse_addresses(same))


def _left_out(node: BlockNode, chosen: Set[int]) -> Iterator[Block]:
    for child in node.below:
        if id(child) in chosen:
            yield from _left_out(child, chosen)
        else:
            yield child.block
