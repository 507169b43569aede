# SPDX-License-Identifier: Apache-2.0
"""Port rules as one security list: explicit, merged, always in the same order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from components.oci.plan import OciNetworkPlan
from components.oci.rules import (
    ANYWHERE,
    LONGEST_DESCRIPTION,
    RULES_PER_LIST,
    list_tags,
    security_lists,
    security_rules,
)
from components.oci.stack import OciNetwork
from components.plan.model import INTERNET, SERVICES, SUBNET, PortRule
from components.values.protocols import TCP, UDP
from components.values.security_rules import port_range_text
from schemas.model import PortRange
from tests.support.samples import job, plan


def network(*rules: PortRule) -> OciNetworkPlan:
    return replace(plan().network, rules=rules)


ranges = st.none() | st.tuples(st.integers(1, 60000), st.integers(0, 100)).map(
    lambda ends: PortRange(ends[0], sum(ends))
)
rules = st.lists(
    st.builds(
        PortRule,
        source=st.sampled_from(["a/main", "a/worker", SUBNET]),
        target=st.sampled_from(["a/main", "a/worker", SUBNET, SERVICES, INTERNET]),
        ports=ranges,
        why=st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=300),
    ),
    max_size=12,
)


@given(rules=rules, seed=st.integers())
def test_the_order_of_the_plan_does_not_show(rules: list[PortRule], seed: int) -> None:
    turned = list(rules)
    Random(seed).shuffle(turned)
    one, other = security_rules(network(*rules)), security_rules(network(*turned))
    assert [(rule.peer, rule.ports) for rule in one.ingress] == [(rule.peer, rule.ports) for rule in other.ingress]
    assert [(rule.peer, rule.ports) for rule in one.egress] == [(rule.peer, rule.ports) for rule in other.egress]


@given(rules=rules)
def test_everything_asked_for_is_open_nothing_twice_and_nothing_from_outside(rules: list[PortRule]) -> None:
    made = security_rules(network(*rules))
    opened = [rule.ports for rule in made.ingress]
    for rule in rules:
        if rule.target not in (SERVICES, INTERNET):
            assert any(one is None or (rule.ports and PortRange(*one).covers(rule.ports)) for one in opened)
    for side in (made.ingress, made.egress):
        told = [(rule.peer, rule.ports) for rule in side]
        assert len(told) == len(set(told))
        assert all(0 < len(rule.description) <= LONGEST_DESCRIPTION for rule in side)
    assert {rule.peer for rule in made.ingress} <= {network().subnet_cidr}


def test_what_comes_in_within_the_subnet_may_go_out_within_it() -> None:
    made = security_rules(plan(network=OciNetwork(nat=True)).network)
    inside = [replace(rule, direction="egress") for rule in made.ingress]
    assert [rule for rule in made.egress if rule.peer == made.ingress[0].peer] == inside
    beyond = [(rule.peer, rule.peer_kind, rule.ports) for rule in made.egress if rule not in inside]
    assert beyond == [(SERVICES, "services", (443, 443)), (ANYWHERE, "addresses", (443, 443))]


def test_rules_of_one_range_are_one_with_every_reason() -> None:
    ports = PortRange(8786, 8786)
    made = security_rules(network(PortRule("a/w", "a/m", ports, "one"), PortRule("a/m", "a/m", ports, "two")))
    assert [rule.description for rule in made.ingress] == ["one; two"]


def test_a_rule_of_udp_is_one_of_its_own() -> None:
    ports, every = PortRange(4791, 4791), PortRange(4000, 5000)
    udp = PortRule(SUBNET, SUBNET, ports, "RoCE", "udp")
    made = security_rules(network(udp, PortRule(SUBNET, SUBNET, every, "data")))
    assert [(rule.protocol, rule.ports) for rule in made.ingress] == [
        (TCP, (4000, 5000)), (UDP, (4791, 4791))
    ]  # fmt: skip
    assert list_tags(network(replace(udp, ports=None))) == {}


def test_a_port_open_to_all_makes_the_others_idle() -> None:
    made = security_rules(plan(jobs={"a": job(), "b": job("horovod")}).network)
    assert [rule.ports for rule in made.ingress] == [None]


def test_ranges_stand_in_the_order_of_their_ports() -> None:
    dask = job("dask", {"scheduler": 1, "worker": 2})
    made = security_rules(plan(jobs={"a": job(), "b": dask}).network)
    assert [port_range_text(rule.ports, "all") for rule in made.ingress] == [
        "3000-3100",
        "8700-8800",
        "29400",
        "29500-29563",
    ]


def test_a_port_that_lies_in_a_range_has_no_rule_of_its_own_but_is_told() -> None:
    """A rehearsal found this: nothing failed without the rule for 8786, because the workers' range 8700-8800 contains
    it."""
    made = security_rules(plan(jobs={"b": job("dask", {"scheduler": 1, "worker": 2})}).network)
    (workers,) = [rule for rule in made.ingress if rule.ports == (8700, 8800)]
    assert "register with the scheduler" in workers.description


@given(count=st.integers(0, 450))
def test_rules_beyond_what_a_list_takes_go_into_another(count: int) -> None:
    inside = [PortRule(SUBNET, SUBNET, PortRange(2000 + 2 * one, 2000 + 2 * one), "a port") for one in range(count)]
    made = security_rules(network(*inside, PortRule(SUBNET, SERVICES, PortRange(443, 443), "services")))
    parts = security_lists(made)
    assert tuple(rule for part in parts for rule in part.ingress) == made.ingress
    assert tuple(rule for part in parts for rule in part.egress) == made.egress
    assert all(len(side) <= RULES_PER_LIST for part in parts for side in (part.ingress, part.egress))
    assert len(parts) == (count + 1 + RULES_PER_LIST - 1) // RULES_PER_LIST
