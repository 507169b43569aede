# SPDX-License-Identifier: Apache-2.0
"""Rules and routes, read from what the API stores."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localcloud.hosts.firewall import UnreadableRuleError
from localcloud.oci.job_runs.run_network import reachable_destinations, rules_of, subnet_of
from localcloud.oci.services.network.gateways import OBJECT_STORAGE_ADDRESS, SERVICES_ADDRESS, gateway_services
from localcloud.oci.tenancy_store import StateStore, StoredResource

ALL_SERVICES, OBJECT_STORAGE = (service["cidrBlock"] for service in gateway_services())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    opened = StateStore(tmp_path / "state.sqlite3")
    yield opened
    opened.close()


def _add(store: StateStore, kind: str, identifier: str, parent: str = "", **body: Any) -> StoredResource:
    with store.transaction():
        return store.add(
            StoredResource(identifier, kind, "", identifier, "AVAILABLE", {"id": identifier, **body}, parent)
        )


def _subnet(store: StateStore, *lists: str, **more: Any) -> StoredResource:
    return _add(store, "subnet", "subnet", "vcn", cidrBlock="10.0.1.0/24", securityListIds=list(lists), **more)


def test_lists_then_groups_each_with_its_own_numbers(store: StateStore) -> None:
    tcp = {"protocol": "6", "isStateless": False}
    rules: dict[str, Any] = {
        "ingressSecurityRules": [
            {**tcp, "source": "10.0.0.0/16", "tcpOptions": {"destinationPortRange": {"min": 1, "max": 2}}},
            {**tcp, "source": "group", "sourceType": "NETWORK_SECURITY_GROUP", "isStateless": True},
        ],
        "egressSecurityRules": [
            {**tcp, "destination": ALL_SERVICES, "destinationType": "SERVICE_CIDR_BLOCK", "description": "why"},
            {"protocol": "1", "destination": "0.0.0.0/0", "icmpOptions": {"type": 3, "code": 4}},
        ],
    }
    _add(store, "security-list", "list", **rules)
    group = [
        {"id": "B", "direction": "EGRESS", "protocol": "17", "destination": "10.1.0.0/16",
         "udpOptions": {"destinationPortRange": {"min": 4791, "max": 4791}}},
        {"id": "A", "direction": "INGRESS", "protocol": "17", "source": OBJECT_STORAGE,
         "sourceType": "SERVICE_CIDR_BLOCK", "udpOptions": {"sourcePortRange": {"min": 53, "max": 53}}},
    ]  # fmt: skip
    _add(store, "network-security-group", "group", rules=group)
    vnic = _add(store, "vnic", "vnic", "subnet", privateIp="10.0.1.2", nsgIds=["group"])
    found = rules_of(store, _subnet(store, "list", "gone"), vnic)
    assert [(rule.list, rule.direction, rule.index) for rule in found] == [
        ("list", "ingress", 0), ("list", "ingress", 1), ("list", "egress", 0), ("list", "egress", 1),
        ("group", "ingress", 0), ("group", "egress", 0),
    ]  # fmt: skip
    assert [[str(peer) for peer in rule.peers] for rule in found] == [
        ["10.0.0.0/16"], ["10.0.1.2/32"], [f"{SERVICES_ADDRESS}/32", f"{OBJECT_STORAGE_ADDRESS}/32"], ["0.0.0.0/0"],
        [f"{OBJECT_STORAGE_ADDRESS}/32"], ["10.1.0.0/16"],
    ]  # fmt: skip
    assert [rule.protocol for rule in found] == [6, 6, 6, 1, 17, 17]
    assert (found[0].ports, found[3].icmp, found[4].source_ports) == ((1, 2), (3, 4), (53, 53))
    assert found[5].ports == (4791, 4791)
    assert (found[1].stateless, found[2].description) == (True, "why")


@pytest.mark.parametrize(
    "broken",
    [
        {"protocol": "banana"},
        {"protocol": "6; flush ruleset"},
        {"protocol": "\u0666"},
        {"source": '10.0.0.0/8 }; include "/etc/passwd"'},
        {"source": "all", "sourceType": "SERVICE_CIDR_BLOCK"},
        {"tcpOptions": {"destinationPortRange": {"min": "1", "max": "2 accept"}}},
        {"tcpOptions": {"destinationPortRange": {"min": 2, "max": 1}}},
        {"tcpOptions": {"destinationPortRange": 7}},
        {"protocol": "1", "icmpOptions": {"type": "3 accept"}},
    ],
)
def test_a_rule_that_no_firewall_can_enforce_is_an_error(store: StateStore, broken: dict[str, Any]) -> None:
    """The state may have such rules from an earlier version."""
    _add(store, "security-list", "list", ingressSecurityRules=[{"protocol": "6", "source": "10.0.0.0/16", **broken}])
    vnic = _add(store, "vnic", "vnic", "subnet", privateIp="10.0.1.2")
    with pytest.raises(UnreadableRuleError, match="ingress rule 0 of list"):
        rules_of(store, _subnet(store, "list"), vnic)


def test_rules_with_equal_content_are_equal(store: StateStore) -> None:
    rule = {"protocol": "6", "source": "10.0.0.0/16", "description": "old"}
    kept = _add(store, "security-list", "list", ingressSecurityRules=[rule])
    vnic = _add(store, "vnic", "vnic", "subnet", privateIp="10.0.1.2")
    subnet = _subnet(store, "list")
    (before,) = rules_of(store, subnet, vnic)
    other = {"protocol": "17", "source": "10.0.0.0/16"}
    with store.transaction():
        store.put(kept, body={**kept.body, "ingressSecurityRules": [other, {**rule, "description": "new"}]})
    first, second = rules_of(store, subnet, vnic)
    assert (second.key, second.index) == (before.key, 1)
    assert first.key != before.key


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        (("service-gateway", ALL_SERVICES, ALL_SERVICES), [SERVICES_ADDRESS, OBJECT_STORAGE_ADDRESS]),
        (("service-gateway", OBJECT_STORAGE, OBJECT_STORAGE), [OBJECT_STORAGE_ADDRESS]),
        # A route for a label that the gateway does not serve leads nowhere.
        (("service-gateway", OBJECT_STORAGE, ALL_SERVICES), []),
        (("nat-gateway", "", "0.0.0.0/0"), ["0.0.0.0/0"]),
        (("nat-gateway", "blocked", "0.0.0.0/0"), []),
        (("internet-gateway", "", "0.0.0.0/0"), []),
        (("nat-gateway", "", "2000::/3"), []),
    ],
)
def test_gateways_lead_where_their_kind_does(store: StateStore, rule: tuple[str, str, str], found: list[str]) -> None:
    kind, served, destination = rule
    named = [{"serviceId": each["id"]} for each in gateway_services() if each["cidrBlock"] == served]
    _add(store, kind, "gateway", services=named, blockTraffic=served == "blocked")
    _add(store, "vcn", "vcn", cidrBlocks=["10.0.0.0/16", "172.16.0.0/16"])
    _add(store, "route-table", "table", routeRules=[{"destination": destination, "networkEntityId": "gateway"}])
    subnet = _subnet(store, routeTableId="table")
    addresses = {f"{each}/32" if "/" not in each else each for each in found}
    assert set(reachable_destinations(store, subnet)) == {"10.0.0.0/16", "172.16.0.0/16"} | addresses
    assert subnet_of(subnet).router == "10.0.1.1"
