# SPDX-License-Identifier: Apache-2.0
"""Where the NAT gateway lies: a small subnet of its own, beside that of the nodes."""

from __future__ import annotations

import ipaddress

# AWS allows no smaller one.
SMALLEST_SUBNET = 28


def gateway_cidr(network: str, nodes: str) -> str | None:
    """The last block of the network that is free. None if the nodes' subnet takes all of it."""
    whole, taken = ipaddress.ip_network(network, strict=False), ipaddress.ip_network(nodes, strict=False)
    last = ipaddress.ip_network(f"{whole.broadcast_address}/{SMALLEST_SUBNET}", strict=False)
    first = ipaddress.ip_network(f"{whole.network_address}/{SMALLEST_SUBNET}", strict=False)
    return next((str(block) for block in (last, first) if not block.overlaps(taken)), None)
