# SPDX-License-Identifier: Apache-2.0
"""Which nodes may reach each other, for each framework and mode."""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.oci.stack import OciNetwork
from components.plan.build import build_plan
from components.plan.model import INTERNET, SERVICES, SUBNET, PortRule
from components.plan.ports import subnet_cidr
from schemas.each import addresses_needed
from schemas.model import Code, Git, Job, PortRange, Run
from tests.support.samples import job, plan, stack

OWN = """
name = "ring"
summary = "a ring of peers"
rank = "in order"
[roles.peer]
minimum = 2
mode = "WORKER"
why = "every peer is alike"
runs_command = true
[[ports]]
label = "ring"
listens = ["peer"]
reached_from = ["peer"]
default = "7000-7003"
why = "each peer talks to its neighbours"
"""


def inside(rules: tuple[PortRule, ...]) -> set[tuple[str, str, str]]:
    """(from, to, ports) of the rules between nodes."""
    return {
        (rule.source.partition("/")[2], rule.target.partition("/")[2], str(rule.ports or "all"))
        for rule in rules
        if rule.target not in (SERVICES, INTERNET)
    }


def least(of: Job) -> set[tuple[str, str, str]]:
    return inside(plan(jobs={"train": of}).network.rules)


def test_dask_opens_scheduler_workers_and_nannies_each_from_where_it_is_reached() -> None:
    opened = least(job("dask", {"scheduler": 1, "worker": 2}))
    assert opened == {
        ("worker", "scheduler", "8786"),
        ("scheduler", "worker", "8700-8800"),
        ("worker", "worker", "8700-8800"),
        ("scheduler", "worker", "3000-3100"),
    }


def test_dask_without_nannies_opens_no_port_for_them() -> None:
    opened = least(job("dask", {"scheduler": 1, "worker": 2}, options={"nanny": False}))
    assert {ports for _, _, ports in opened} == {"8786", "8700-8800"}


def test_dask_opens_the_dashboard_where_it_is_asked_for() -> None:
    opened = least(job("dask", {"scheduler": 1, "worker": 1}, options={"dashboard": True}))
    assert ("worker", "scheduler", "8787") in opened


def test_a_single_worker_need_not_reach_itself() -> None:
    opened = least(job("dask", {"scheduler": 1, "worker": 1}))
    assert ("worker", "worker", "8700-8800") not in opened


def test_pytorch_opens_the_rendezvous_and_the_data_range() -> None:
    assert least(job("pytorch", {"main": 1, "worker": 2})) == {
        ("worker", "main", "29400"),
        ("main", "worker", "29500-29563"),
        ("worker", "main", "29500-29563"),
        ("worker", "worker", "29500-29563"),
    }


def test_pytorch_on_one_node_opens_nothing() -> None:
    assert least(job("pytorch", {"main": 1})) == set()


def test_all_means_every_port() -> None:
    opened = least(job("pytorch", {"main": 1, "worker": 1}, ports={"data": "all"}))
    assert ("main", "worker", "all") in opened


def test_horovod_opens_every_port_between_its_nodes_unless_it_is_pinned() -> None:
    assert ("main", "worker", "all") in least(job("horovod"))
    pinned = least(job("horovod", ports={"data": PortRange(30000, 30255)}))
    assert "all" not in {ports for _, _, ports in pinned}
    assert ("worker", "main", "29600") in pinned


@pytest.mark.parametrize(
    ("strategy", "roles", "expected"),
    [
        ("mirrored", {"main": 1}, set()),
        (
            "multi-worker-mirrored",
            {"main": 1, "worker": 2},
            {("main", "worker", "12345"), ("worker", "main", "12345"), ("worker", "worker", "12345")},
        ),
        (
            "parameter-server",
            {"main": 1, "worker": 2, "ps": 1},
            {
                ("main", "worker", "12345"),
                ("ps", "worker", "12345"),
                ("main", "ps", "12345"),
                ("worker", "ps", "12345"),
            },
        ),
    ],
)
def test_tensorflow_opens_what_its_strategy_needs(
    strategy: str, roles: Mapping[str, int], expected: set[tuple[str, str, str]]
) -> None:
    assert least(job("tensorflow", roles, strategy=strategy)) == expected


def test_a_framework_of_the_team_is_opened_by_its_own_rows() -> None:
    ring = job("ring", {"peer": 3})
    made = build_plan(stack(jobs={"train": ring}), {"ring": tomllib.loads(OWN)})
    assert inside(made.network.rules) == {("peer", "peer", "7000-7003")}


@pytest.mark.parametrize(
    ("framework", "roles", "expected"),
    [
        ("dask", {"scheduler": 1, "worker": 1}, {"8786", "8787", "8700-8800", "3000-3100"}),
        ("pytorch", {"main": 1, "worker": 1}, {"29400"}),
        ("horovod", {"main": 1, "worker": 1}, {"all"}),
        ("tensorflow", {"main": 1, "worker": 1}, {"12345"}),
    ],
)
def test_documented_opens_the_documents_ports_to_the_subnet(
    framework: str, roles: Mapping[str, int], expected: set[str]
) -> None:
    made = plan(jobs={"train": job(framework, roles)}, network=OciNetwork(mode="documented"))
    rules = [rule for rule in made.network.rules if rule.target == SUBNET]
    assert {str(rule.ports or "all") for rule in rules} == expected
    assert {rule.source for rule in rules} == {SUBNET}


def test_documented_follows_a_port_that_was_moved() -> None:
    moved = job("tensorflow", ports={"worker": PortRange(12400, 12400)})
    made = plan(jobs={"train": moved}, network=OciNetwork(mode="documented"))
    assert "12400" in {str(rule.ports) for rule in made.network.rules}
    assert "12345" not in {str(rule.ports) for rule in made.network.rules}


def test_documented_opens_what_a_framework_needs_that_the_documents_do_not_name() -> None:
    ring = stack(jobs={"train": job("ring", {"peer": 3})}, network=OciNetwork(mode="documented"))
    own = {"ring": tomllib.loads(OWN)}
    assert inside(build_plan(ring, own).network.rules) == {("peer", "peer", "7000-7003")}
    opened = stack(jobs={}, network=OciNetwork(mode="documented", frameworks=("ring",)))
    assert {str(rule.ports) for rule in build_plan(opened, own).network.rules if rule.target == SUBNET} == {"7000-7003"}


def test_documented_keeps_horovods_rendezvous_open_where_its_data_is_kept_to_a_range() -> None:
    pinned = job("horovod", ports={"data": PortRange(30000, 30511)})
    rules = plan(jobs={"train": pinned}, network=OciNetwork(mode="documented")).network.rules
    assert {str(rule.ports) for rule in rules if rule.target == SUBNET} == {"29600", "30000-30511"}


def test_documented_opens_the_usual_ports_for_other_stacks_beside_a_jobs_own() -> None:
    moved = job("tensorflow", ports={"worker": PortRange(12400, 12400)})
    network = OciNetwork(mode="documented", frameworks=("tensorflow",))
    rules = plan(jobs={"train": moved}, network=network).network.rules
    assert {str(rule.ports) for rule in rules if rule.target == SUBNET} == {"12345", "12400"}


def test_proof_of_concept_opens_all_tcp_in_and_out_of_the_subnet() -> None:
    def opened(network: OciNetwork) -> list[tuple[str, str]]:
        rules = plan(network=network).network.rules
        assert all(rule.ports is None for rule in rules)
        return [(rule.source, rule.target) for rule in rules]

    assert opened(OciNetwork(mode="proof-of-concept")) == [(SUBNET, SUBNET), (SUBNET, SERVICES)]
    assert opened(OciNetwork(mode="proof-of-concept", nat=True)) == [
        (SUBNET, SUBNET),
        (SUBNET, SERVICES),
        (SUBNET, INTERNET),
    ]


@pytest.mark.parametrize(
    ("url", "network", "expected"),
    [
        ("https://git.example.com/a.git", OciNetwork(nat=True), {(SERVICES, "443"), (INTERNET, "443")}),
        ("git@git.example.com:a.git", OciNetwork(nat=True), {(SERVICES, "443"), (INTERNET, "443"), (INTERNET, "22")}),
        (
            "ssh://git@git.example.com:2222/a.git",
            OciNetwork(subnet="ocid1.subnet.a"),
            {(SERVICES, "443"), (INTERNET, "2222")},
        ),
        ("https://git.example.com/a.git", OciNetwork(subnet="ocid1.subnet.a"), {(SERVICES, "443"), (INTERNET, "443")}),
        ("ssh://devops.scmservice.x.oci.oraclecloud.com/a", OciNetwork(), {(SERVICES, "443"), (SERVICES, "22")}),
        ("git@git.example.com:a.git", OciNetwork(), {(SERVICES, "443")}),  # no way out: a finding of its own (TY108)
    ],
)
def test_the_way_out_has_the_port_that_git_clones_by(
    url: str, network: OciNetwork, expected: set[tuple[str, str]]
) -> None:
    rules = plan(jobs={"train": job(code=Code(git=Git(url)))}, network=network).network.rules
    assert {(rule.target, str(rule.ports)) for rule in rules if rule.target in (SERVICES, INTERNET)} == expected


def test_services_are_always_reached_and_the_internet_only_through_nat() -> None:
    def targets(network: OciNetwork) -> set[str]:
        return {rule.target for rule in plan(jobs={}, network=network).network.rules}

    assert targets(OciNetwork()) == {SERVICES}
    assert targets(OciNetwork(nat=True)) == {SERVICES, INTERNET}


def test_a_network_opened_for_others_has_the_defaults_of_their_frameworks() -> None:
    rules = plan(jobs={}, network=OciNetwork(frameworks=("dask", "horovod"))).network.rules
    opened = {str(rule.ports or "all") for rule in rules if rule.target == SUBNET}
    # The dashboard's option is off by default.
    assert opened == {"8786", "8700-8800", "3000-3100", "29600", "all"}


def test_rules_say_why_and_how_well_that_is_known() -> None:
    for rule in plan(jobs={"a": job("dask", {"scheduler": 1, "worker": 2}), "b": job()}).network.rules:
        assert rule.why
        assert rule.evidence in ("measured", "documented")
        assert rule.protocol == "tcp"


@given(nodes=st.integers(1, 2000), runs=st.integers(1, 4))
def test_the_subnet_has_an_address_for_every_node_of_every_run(nodes: int, runs: int) -> None:
    many = job(roles={"main": 1, "worker": nodes}, runs={f"run-{number}": Run() for number in range(runs)})
    sample = stack(jobs={"train": many})
    block = ipaddress.ip_network(subnet_cidr(sample))
    assert addresses_needed(sample) == (nodes + 1) * runs
    assert block.num_addresses >= addresses_needed(sample) + sample.network.reserved_addresses
    assert block.prefixlen <= 24
    assert block.subnet_of(ipaddress.ip_network(sample.network.cidr))  # type: ignore[arg-type]  # both are IPv4


def test_a_subnet_that_is_said_is_taken_and_a_small_network_is_its_own_subnet() -> None:
    assert plan(network=OciNetwork(subnet_cidr="10.20.7.0/26")).network.subnet_cidr == "10.20.7.0/26"
    assert plan(network=OciNetwork(cidr="10.20.0.0/28")).network.subnet_cidr == "10.20.0.0/28"
