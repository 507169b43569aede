# SPDX-License-Identifier: Apache-2.0
"""If rules cannot be enforced, they are refused, or the run fails with the reason."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import oci
import pytest

from localcloud.control import Cloud
from tests.support.cloud_world import World
from tests.support.network_world import ANYWHERE, Network, egress, ingress
from tests.support.waiting import eventually

core = oci.core.models
_TEXT = "6 accept\nadd rule inet trainyard ingress accept\n"


def _in(**more: Any) -> Any:
    return core.IngressSecurityRule(**{"protocol": "6", "source": ANYWHERE, **more})


def _tcp(first: Any, last: Any) -> Any:
    return core.TcpOptions(destination_port_range=core.PortRange(min=first, max=last))


@pytest.mark.parametrize(
    "rule",
    [
        _in(protocol="banana"), _in(protocol=_TEXT), _in(protocol='6\ninclude "/etc/passwd"'), _in(protocol="256"),
        _in(protocol="-1"), _in(protocol="06"), _in(protocol="٦"), _in(protocol=""), _in(protocol="6 "),
        _in(source="10.0.0.0/8 } accept"), _in(source="nowhere"), _in(source="10.0.0.0/33"),
        _in(source="any", source_type="SERVICE_CIDR_BLOCK"), _in(tcp_options=_tcp(0, 1)), _in(tcp_options=_tcp(2, 1)),
        _in(tcp_options=_tcp(1, 65536)), _in(tcp_options=_tcp(1, 2**40)),
        _in(protocol="1", icmp_options=core.IcmpOptions(type=256)),
        _in(protocol="1", icmp_options=core.IcmpOptions(type=3, code=-1)),
    ],
    ids=range(19),
)  # fmt: skip
def test_a_rule_that_no_firewall_can_express_is_refused(world: World, rule: Any) -> None:
    network = Network(world)
    place = {"compartment_id": world.compartment, "vcn_id": world.vcn.id}
    group = network.client.create_network_security_group(core.CreateNetworkSecurityGroupDetails(**place)).data.id
    same = {name: getattr(rule, name) for name in ("protocol", "source", "source_type", "tcp_options", "icmp_options")}
    attempts: tuple[Callable[[], Any], ...] = (
        lambda: network.client.create_security_list(
            core.CreateSecurityListDetails(**place, ingress_security_rules=[rule], egress_security_rules=[])
        ),
        lambda: network.client.update_security_list(
            world.vcn.default_security_list_id, core.UpdateSecurityListDetails(ingress_security_rules=[rule])
        ),
        lambda: network.client.add_network_security_group_security_rules(
            group,
            core.AddNetworkSecurityGroupSecurityRulesDetails(
                security_rules=[core.AddSecurityRuleDetails(direction="INGRESS", **same)]
            ),
        ),
    )
    for attempt in attempts:
        with pytest.raises(oci.exceptions.ServiceError) as refused:
            attempt()
        assert (refused.value.status, refused.value.code) == (400, "InvalidParameter")


@pytest.mark.parametrize(("destination", "kind"), [("nowhere", "CIDR_BLOCK"), ("any", "SERVICE_CIDR_BLOCK")])
def test_a_route_to_nowhere_is_refused(world: World, destination: str, kind: str) -> None:
    network = Network(world)
    gateway = network.service_gateway()
    rule = core.RouteRule(destination=destination, destination_type=kind, network_entity_id=gateway)
    details = core.UpdateRouteTableDetails(route_rules=[rule])
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        network.client.update_route_table(network.vcn.default_route_table_id, details)
    assert (refused.value.status, refused.value.code) == (400, "InvalidParameter")


def _spoil(cloud: Cloud, security_list: str) -> None:
    """Writes a rule into the state that only an earlier version would have accepted."""
    with closing(sqlite3.connect(cloud.home / "state.sqlite3", timeout=60)) as connection, connection:
        ((text,),) = connection.execute("SELECT body FROM resources WHERE id = ?", (security_list,)).fetchall()
        body = json.loads(text)
        body["ingressSecurityRules"][0]["protocol"] = "banana"
        connection.execute("UPDATE resources SET body = ? WHERE id = ?", (json.dumps(body), security_list))


def _rules() -> tuple[list[Any], list[Any]]:
    return [ingress("tcp", ANYWHERE, 5000)], [egress("all", ANYWHERE)]


def test_a_run_whose_rules_cannot_be_enforced_fails_with_the_reason(world: World, shared_cloud: Cloud) -> None:
    network = Network(world)
    spoilt, sound = network.subnet("10.0.1.0/24", *_rules()), network.subnet("10.0.2.0/24", *_rules())
    _spoil(shared_cloud, network.lists[spoilt])
    run = network.run("tell('it ran')", spoilt)
    other = network.run("tell('it ran')", sound)
    ended = world.finished(run)
    assert ended.lifecycle_state == "FAILED", world.lines(run)
    assert "cannot be enforced on this machine" in ended.lifecycle_details
    assert f"ingress rule 0 of {network.lists[spoilt]}" in ended.lifecycle_details
    assert (world.lines(run), network.evidence(run)["enforced"]) == ([], False)
    assert world.finished(other).lifecycle_state == "SUCCEEDED", "the others of the VCN are held by their own rules"
    assert network.evidence(other)["enforced"]


def test_a_rule_change_that_cannot_be_enforced_fails_the_live_run(world: World, shared_cloud: Cloud) -> None:
    network = Network(world)
    subnet = network.subnet("10.0.1.0/24", *_rules())
    run = network.run("tell('it runs'); time.sleep(600)", subnet)
    world.printed(run, "it runs")
    _spoil(shared_cloud, network.lists[subnet])
    eventually(lambda: _nudged(network, run), lambda state: state != "IN_PROGRESS")
    ended = world.finished(run)
    assert (ended.lifecycle_state, "could not be put in force" in ended.lifecycle_details) == ("FAILED", True), ended
    assert network.evidence(run)["enforced"] is False


def _nudged(network: Network, run: Any) -> str:
    """The run's state after a change of the network, which makes the hosts read their rules again."""
    network.client.update_vcn(network.vcn.id, core.UpdateVcnDetails(display_name="changed"))
    return str(network.world.read(run).lifecycle_state)
