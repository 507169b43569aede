# SPDX-License-Identifier: Apache-2.0
"""Security rules as rulesets: whatever OCI can state, nft takes; what means nothing here lets nobody in."""

import shutil
from dataclasses import replace
from ipaddress import IPv4Network
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from localcloud.hosts.firewall import TABLE, rulesets
from localcloud.hosts.rules import ICMP, TCP, UDP, FirewallRule
from localcloud.hosts.site import Namespace, Site, SiteTask

NFT = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin") or "nft"
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


@given(st.lists(rules(), max_size=12))
def test_any_rules_make_the_same_text_and_deny_by_default(some: list[FirewallRule]) -> None:
    text = "".join(rulesets(some))
    assert text == "".join(rulesets(list(some)))
    assert text.count("policy drop;") == 2
    assert text.count("goto ingress_allowed") <= sum(rule.direction == "ingress" for rule in some)


def _give(site: Site, namespace: Namespace, some: list[FirewallRule], generation: int) -> None:
    for text in rulesets(some, generation):
        site.run([SiteTask([NFT, "-f", "-"], text, namespace.number)])


def test_nft_takes_whatever_oci_can_state_again_and_again() -> None:
    site = Site()
    try:
        site.prepare()
        (namespace,) = site.open(1)

        generations = count()

        @given(st.lists(rules(), min_size=20, max_size=40))
        def taken(some: list[FirewallRule]) -> None:
            apart = [replace(rule, peers=rule.peers[:1]) for rule in some]
            _give(site, namespace, apart, next(generations))

        taken()
        # As many as five lists of OCI's limit hold.
        many = [
            FirewallRule(
                "list",
                "ingress",
                n,
                6,
                "10.0.0.0/8",
                (IPv4Network("10.0.0.0/8"),),
                ports=(n + 1, n + 1),
                key=f"{n:016x}",
            )
            for n in range(1000)
        ]
        _give(site, namespace, many, next(generations))
        (listed,) = site.run([SiteTask([NFT, "list", "table", *TABLE.split()], "", namespace.number)])
        assert listed.count("goto ingress_allowed") == 1000
    finally:
        site.close()


def test_a_rule_about_nobody_here_lets_nobody_in() -> None:
    (text,) = rulesets([FirewallRule("list", "ingress", 0, None, "::/0", (), key="0" * 16)])
    assert "goto" not in text
