# SPDX-License-Identifier: Apache-2.0
"""Shared by all modules of core networking: paths, and the validation of CIDR blocks."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, ip_network

from localcloud.server.errors import invalid

SERVICE = "core"
VERSION = "/20160918"
NO_IPV6 = "its networks are IPv4 only"


def parse_block(cidr: str) -> IPv4Network:
    """Parses a block. InvalidParameter unless it is a /16 to /30 without host bits, as OCI requires."""
    try:
        block = ip_network(cidr)
    except ValueError as error:
        raise invalid(f"cidrBlock {cidr!r}: {error}") from None
    if not isinstance(block, IPv4Network) or not 16 <= block.prefixlen <= 30:
        raise invalid(f"cidrBlock {cidr!r} must be an IPv4 block from /16 to /30")
    return block


def parse_separate_blocks(cidrs: Iterable[str]) -> list[IPv4Network]:
    """Parses the blocks of one VCN, which must not overlap."""
    networks = [parse_block(cidr) for cidr in cidrs]
    for index, block in enumerate(networks):
        if any(block.overlaps(other) for other in networks[:index]):
            raise invalid(f"cidrBlocks overlap: {block}")
    return networks
