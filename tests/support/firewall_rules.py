# SPDX-License-Identifier: Apache-2.0
"""Strategies for any security rule that OCI allows."""

from ipaddress import IPv4Network

from hypothesis import strategies as st

from components.values.protocols import ICMP, TCP, UDP
from localcloud.hosts.firewall import FirewallRule

_PORTS = st.tuples(st.integers(1, 65535), st.integers(1, 65535)).map(lambda pair: (min(pair), max(pair)))
_BLOCKS = st.builds(
    lambda address, length: IPv4Network((address, length), strict=False), st.ip_addresses(v=4), st.integers(0, 32)
) | st.just(IPv4Network("0.0.0.0/0"))


@st.composite
def rules(draw: st.DrawFn) -> FirewallRule:
    protocol = draw(st.sampled_from([None, TCP, UDP, ICMP, 58, 47, 50]) | st.integers(0, 255))
    ported, some = protocol in (TCP, UDP), st.none() | _PORTS
    return FirewallRule(
        list="list", direction=draw(st.sampled_from(["ingress", "egress"])), index=0, protocol=protocol, peer="",
        peers=tuple(draw(st.lists(_BLOCKS, max_size=3))), source_ports=draw(some) if ported else None,
        ports=draw(some) if ported else None,
        icmp=draw(st.none() | st.tuples(st.integers(0, 255), st.none() | st.integers(0, 255)))
        if protocol == ICMP else None,
        stateless=draw(st.booleans()), key=draw(st.text("0123456789abcdef", min_size=16, max_size=16)),
    )  # fmt: skip
