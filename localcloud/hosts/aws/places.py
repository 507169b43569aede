# SPDX-License-Identifier: Apache-2.0
"""Where instances find the services of the local AWS: addresses outside of every network, as AWS's own are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network

from localcloud.aws.machines import NetworkAround

# The store has an address of its own, because a gateway endpoint leads to it and to nothing else.
STORAGE_ADDRESS, SERVICES_ADDRESS, METADATA_ADDRESS = "52.216.0.10", "52.94.0.10", "169.254.169.254"
ADDRESSES = (STORAGE_ADDRESS, SERVICES_ADDRESS, METADATA_ADDRESS)
_LOCAL, _BLACKHOLE = "local", ""
# What a route's target begins with, where it leads out of the network.
_OUT = ("igw-", "nat-", "tgw-", "eni-", "i-")


def destinations(around: NetworkAround) -> tuple[str, ...]:
    """The blocks that the router of a subnet reaches: its network, and what its routes lead to."""
    subnet = IPv4Network(around.subnet_block)
    blocks = {block for block in around.network_blocks if IPv4Network(block) != subnet}
    blocks |= set(_routed(around.routes))
    if around.endpoints:
        # In a real network they have addresses of its own, by names; here the services' own address leads there.
        blocks.add(f"{SERVICES_ADDRESS}/32")
    return tuple(sorted({*blocks, f"{METADATA_ADDRESS}/32"}))


def router(around: NetworkAround) -> str:
    """The address of a subnet's router: its first one."""
    return str(IPv4Network(around.subnet_block)[1])


def _routed(routes: Iterable[tuple[str, str]]) -> Iterator[str]:
    for block, target in routes:
        if block.startswith("pl-"):
            if target.startswith("vpce-"):
                yield f"{STORAGE_ADDRESS}/32"
        elif target.startswith("vpce-"):
            yield f"{STORAGE_ADDRESS}/32"
        elif target.startswith(_OUT) and ":" not in block:
            yield "default" if IPv4Network(block).prefixlen == 0 else block
