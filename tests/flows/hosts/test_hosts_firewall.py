# SPDX-License-Identifier: Apache-2.0
"""nft accepts every rule that OCI allows."""

from dataclasses import replace
from ipaddress import IPv4Network
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from localcloud.environments import network_tools
from localcloud.hosts.firewall import TABLE, FirewallRule, rulesets
from localcloud.hosts.site import Namespace, Site, SiteTask
from tests.support.firewall_rules import rules
from tests.support.programs import require_program


def _give(nft: str, site: Site, namespace: Namespace, some: list[FirewallRule], generation: int) -> None:
    for text in rulesets(some, generation):
        site.run([SiteTask([nft, "-f", "-"], text, namespace.number)])


def test_nft_accepts_every_rule_that_oci_allows() -> None:
    nft = network_tools.find_network_tool("nft") or require_program("nft")
    site = Site()
    try:
        site.prepare()
        (namespace,) = site.open(1)

        generations = count()

        @given(st.lists(rules(), min_size=20, max_size=40))
        def taken(some: list[FirewallRule]) -> None:
            apart = [replace(rule, peers=rule.peers[:1]) for rule in some]
            _give(nft, site, namespace, apart, next(generations))

        taken()
        # The largest number of rules in five security lists.
        many = [
            FirewallRule(
                list="list",
                direction="ingress",
                index=n,
                protocol=6,
                peer="10.0.0.0/8",
                peers=(IPv4Network("10.0.0.0/8"),),
                ports=(n + 1, n + 1),
                key=f"{n:016x}",
            )
            for n in range(1000)
        ]
        _give(nft, site, namespace, many, next(generations))
        (listed,) = site.run([SiteTask([nft, "list", "table", *TABLE.split()], "", namespace.number)])
        assert listed.count("goto ingress_allowed") == 1000
    finally:
        site.close()
