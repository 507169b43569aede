# SPDX-License-Identifier: Apache-2.0
"""Blocks of addresses as one set: how much of the internet they let in together."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network

from components.values.security_rules import address_block

# Addresses that nobody on the internet has.
_PRIVATE = tuple(
    ip_network(block)
    for block in (
        *("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"),
        *("224.0.0.0/3", "::/3", "4000::/2", "8000::/1"),
    )
)
# The most public addresses of one company: a /8, or the /32 that a provider gets of IPv6. S3 draws the line there too.
_MOST_IPV4, _MOST_IPV6 = 2**24, 2**96


def hold_the_public(blocks: Iterable[str]) -> bool:
    """Whether these blocks together have more public addresses than any one company. Texts that are not address blocks
    have none."""
    networks = [block for block in map(address_block, blocks) if block is not None]
    fourth = collapse_addresses(block for block in networks if isinstance(block, IPv4Network))
    sixth = collapse_addresses(block for block in networks if isinstance(block, IPv6Network))
    return sum(map(_public_addresses, fourth)) > _MOST_IPV4 or sum(map(_public_addresses, sixth)) > _MOST_IPV6


def _public_addresses(block: IPv4Network | IPv6Network) -> int:
    private = [other for other in _PRIVATE if other.version == block.version and other.overlaps(block)]
    if any(other.prefixlen <= block.prefixlen for other in private):
        return 0
    return block.num_addresses - sum(other.num_addresses for other in private)
