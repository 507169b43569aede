# SPDX-License-Identifier: Apache-2.0
"""Security rules of each platform as one value, and what it allows."""

from __future__ import annotations

from typing import Any

import pytest

from components.platform.traffic import Flow
from components.values.projections import security_rules_of, types_with_rules
from components.values.protocols import ICMP, TCP, UDP
from components.values.security_rules import SecurityRule, port_range_text
from policies.rule import NotKnownError, Unknown

LIST, GROUP_RULE_OF_OCI, GROUP_RULE = (
    "oci:Core/securityList:SecurityList",
    "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule",
    "aws:ec2/securityGroupRule:SecurityGroupRule",
)
GROUP, INGRESS = "aws:ec2/securityGroup:SecurityGroup", "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
WEB = SecurityRule(direction="ingress", peer="10.0.0.0/8", protocol=TCP, ports=(443, 443))


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (LIST, {
            "ingressSecurityRules": [
                {"protocol": "6", "source": "10.0.0.0/8", "tcpOptions": {"min": 443, "max": 443}},
            ]
        }),
        (GROUP_RULE_OF_OCI, {
            "direction": "INGRESS", "protocol": "6", "source": "10.0.0.0/8", "sourceType": "CIDR_BLOCK",
            "tcpOptions": {"destinationPortRange": {"min": 443.0, "max": 443.0}},
        }),
        (INGRESS, {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIpv4": "10.0.0.0/8"}),
        (GROUP, {"ingress": [{"protocol": "6", "fromPort": 443, "toPort": "443", "cidrBlocks": ["10.0.0.0/8"]}]}),
        (GROUP_RULE, {
            "type": "ingress", "protocol": "TCP", "fromPort": 443, "toPort": 443, "cidrBlocks": ["10.0.0.0/8"],
            "self": False,
        }),
    ],
)  # fmt: skip
def test_one_rule_is_one_value_however_it_is_written(token: str, inputs: dict[str, Any]) -> None:
    assert security_rules_of(token, inputs) == (WEB,)


def test_each_peer_of_a_group_is_a_rule() -> None:
    row = {
        "protocol": "-1",
        "cidrBlocks": ["10.0.0.0/8"],
        "ipv6CidrBlocks": [],
        "prefixListIds": ["pl-1"],
        "self": True,
    }
    rules = security_rules_of(GROUP, {"egress": [row]})
    assert [(rule.direction, rule.protocol, rule.peer_kind, rule.peer) for rule in rules] == [
        ("egress", None, "addresses", "10.0.0.0/8"),
        ("egress", None, "prefix list", "pl-1"),
        ("egress", None, "group", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "icmp"),
    [
        ({"protocol": "1", "icmpOptions": {"type": 3, "code": 4}}, (3, 4)),
        ({"protocol": "1", "icmpOptions": {"type": 3, "code": -1}}, (3, None)),
        ({"protocol": "58", "icmpOptions": {"type": 3}}, (3, None)),
        ({"protocol": "1"}, None),
        ({"protocol": "17", "icmpOptions": {"type": 3}}, None),
    ],
)
def test_types_and_codes_of_icmp(rule: dict[str, Any], icmp: object) -> None:
    (read,) = security_rules_of(LIST, {"egressSecurityRules": [{**rule, "destination": "10.0.0.0/8"}]})
    assert (read.icmp, read.ports) == (icmp, None)


def test_other_resources_have_no_rules() -> None:
    assert security_rules_of("oci:Core/vcn:Vcn", {"ingressSecurityRules": [{"protocol": "6"}]}) == ()
    assert LIST in types_with_rules()


@pytest.mark.parametrize("key", ["protocol", "source", "sourceType", "tcpOptions"])
def test_an_unknown_part_of_a_rule_stays_and_the_rest_is_read(key: str) -> None:
    row = {"protocol": "6", "source": "10.0.0.0/8", "tcpOptions": {"min": 443, "max": 443}, key: Unknown(key)}
    (rule,) = security_rules_of(LIST, {"ingressSecurityRules": [row]})
    parts = {"protocol": rule.protocol, "source": rule.peer, "sourceType": rule.peer_kind, "tcpOptions": rule.ports}
    value: Any = rule.ports[0] if key == "tcpOptions" and rule.ports else parts[key]
    assert isinstance(value, Unknown)
    assert parts["source"] == WEB.peer if key != "source" else parts["sourceType"] == "addresses"


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (LIST, {"ingressSecurityRules": Unknown("rules")}),
        (GROUP, {"ingress": [Unknown("row")]}),
        (INGRESS, {"ipProtocol": Unknown("ipProtocol"), "cidrIpv4": "10.0.0.0/8"}),
        (GROUP_RULE, {"type": Unknown("type"), "protocol": "tcp", "cidrBlocks": ["10.0.0.0/8"]}),
    ],
)
def test_nobody_judges_a_rule_that_is_not_known_yet_by_accident(token: str, inputs: dict[str, Any]) -> None:
    (rule,) = security_rules_of(token, inputs)
    with pytest.raises(NotKnownError):
        bool(rule.protocol in (None, TCP))


@pytest.mark.parametrize(
    ("flow", "allowed"),
    [
        (Flow("ingress", "10.1.1.1", "10.0.0.1", 443, TCP, 1), True),
        (Flow("egress", "10.0.0.1", "10.1.1.1", 443, TCP, 1), False),
        (Flow("ingress", "10.1.1.1", "10.0.0.1", 444, TCP, 1), False),
        (Flow("ingress", "10.1.1.1", "10.0.0.1", 443, UDP, 1), False),
        (Flow("ingress", "11.1.1.1", "10.0.0.1", 443, TCP, 1), False),
    ],
)
def test_a_rule_allows_what_it_names(flow: Flow, allowed: bool) -> None:
    assert WEB.allows(flow, lambda address: True) == allowed


def test_only_the_caller_knows_the_addresses_of_a_name() -> None:
    rule = SecurityRule(direction="egress", peer="sg-1", peer_kind="group")
    flow = Flow("egress", "10.0.0.1", "10.0.0.2", 5, ICMP, 1)
    assert rule.allows(flow, lambda address: address == "10.0.0.2")
    assert not rule.allows(flow, lambda address: False)


def test_ranges_in_words() -> None:
    assert [port_range_text(ports, "all") for ports in (None, (22, 22), (1, 2))] == ["all", "22", "1-2"]
