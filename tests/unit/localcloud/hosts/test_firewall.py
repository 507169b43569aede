# SPDX-License-Identifier: Apache-2.0
"""Security rules as nft rulesets: a rule that cannot be read opens nothing. For real nft see tests/flows/hosts."""

from hypothesis import given
from hypothesis import strategies as st

from localcloud.hosts.firewall import FirewallRule, rulesets
from tests.support.firewall_rules import rules


@given(st.lists(rules(), max_size=12))
def test_rulesets_are_deterministic_and_deny_by_default(some: list[FirewallRule]) -> None:
    text = "".join(rulesets(some))
    assert text == "".join(rulesets(list(some)))
    assert text.count("policy drop;") == 2
    assert text.count("goto ingress_allowed") <= sum(rule.direction == "ingress" for rule in some)


def test_a_rule_without_addresses_allows_nothing() -> None:
    (text,) = rulesets([FirewallRule(list="list", direction="ingress", index=0, peer="::/0", peers=(), key="0" * 16)])
    assert "goto" not in text
