# SPDX-License-Identifier: Apache-2.0
"""Training nodes talk to one another and open connections to the outside. Nobody opens one to them."""

from typing import Any

from components.values.projections import security_rules_of
from components.values.resource_types import TypesWith
from components.values.security_rules import SecurityRule
from policies.addresses import hold_the_public
from policies.rule import (
    PASS,
    JudgedResource,
    PolicyRule,
    PolicyVerdict,
    Unknown,
    fail_because,
    unknown_because,
    verdict_on_every,
)

LIST = "oci:Core/securityList:SecurityList"
GROUP_RULE = "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
RULE_OF_GROUP = "aws:ec2/securityGroupRule:SecurityGroupRule"
EGRESS_RULE = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
PREFIX_LIST = "aws:ec2/managedPrefixList:ManagedPrefixList"


def judge_sources(resource: JudgedResource) -> PolicyVerdict:
    """All sources of a resource are judged together: many small blocks can be the internet."""
    sources: list[str] = []

    def read_source(rule: SecurityRule) -> PolicyVerdict:
        if rule.direction == "ingress" and rule.peer_kind == "addresses" and rule.peer:
            sources.append(rule.peer)
        elif rule.direction == "ingress" and rule.peer_kind == "prefix list":
            return unknown_because(f"what addresses the prefix list {rule.peer} has")
        return PASS

    def read_entry(entry: Any) -> PolicyVerdict:
        sources.append(str(entry.get("cidr")))
        return PASS

    read = (
        verdict_on_every(read_entry, resource.properties.get("entries") or ())
        if resource.type == PREFIX_LIST
        else verdict_on_every(read_source, security_rules_of(resource.type, resource.properties))
    )
    if not hold_the_public(sources):
        return read
    wide = [source for source in dict.fromkeys(sources) if hold_the_public((source,))]
    parts = f"{len(sources)} blocks of addresses, which together are the internet,"
    return fail_because("; ".join(f"lets {source} in" for source in wide or [parts]))


def _list_open_to(*sources: Any) -> JudgedResource:
    return JudgedResource(LIST, {"ingressSecurityRules": [{"source": source, "protocol": "6"} for source in sources]})


def _group_rule(**properties: Any) -> JudgedResource:
    return JudgedResource(GROUP_RULE, {"protocol": "6", **properties})


RULE = PolicyRule(
    id="ingress-from-anywhere",
    level="mandatory",
    asks="No rule lets the internet in.",
    remedy="name the subnet or the office network as the source; people look in through a bastion",
    types=TypesWith(lambda row: row.security_rules and row.token != EGRESS_RULE, {PREFIX_LIST: True}),
    judge=judge_sources,
    passes={
        "within the subnet": _list_open_to("10.20.0.0/24"),
        "no rules": JudgedResource("oci:Core/defaultSecurityList:DefaultSecurityList", {}),
        "from Oracle's services": JudgedResource(
            LIST, {"ingressSecurityRules": [{"source": "all-services", "sourceType": "SERVICE_CIDR_BLOCK"}]}
        ),
        "a group's way out": _group_rule(direction="EGRESS", destination="0.0.0.0/0"),
        "from the office": JudgedResource(INGRESS_RULE, {"cidrIpv4": "203.0.113.0/24", "ipProtocol": "tcp"}),
        "from the group itself": JudgedResource(GROUP, {"ingress": [{"self": True, "protocol": "-1"}]}),
        "offices in a list": JudgedResource(PREFIX_LIST, {"entries": [{"cidr": "203.0.113.0/24"}]}),
        "a rule of the way out": JudgedResource(RULE_OF_GROUP, {"type": "egress", "cidrBlocks": ["0.0.0.0/0"]}),
    },
    fails={
        "from anywhere": _list_open_to("10.20.0.0/24", "0.0.0.0/0"),
        "from anywhere by IPv6": _list_open_to("::/0"),
        "from one half of the world": _list_open_to("128.0.0.0/1"),
        "from the world in parts": _list_open_to(*(f"{first}.0.0.0/8" for first in range(1, 224))),
        "from a continent by IPv6": JudgedResource(INGRESS_RULE, {"cidrIpv6": "2600::/12", "ipProtocol": "tcp"}),
        "the world in a list": JudgedResource(PREFIX_LIST, {"entries": [{"cidr": "0.0.0.0/1"}]}),
        "beside an unknown source": _list_open_to(Unknown("source"), "0.0.0.0/0"),
        "into a group by IPv6": JudgedResource(INGRESS_RULE, {"cidrIpv6": "::/0", "ipProtocol": "tcp"}),
        "by a rule of a group": JudgedResource(RULE_OF_GROUP, {"type": "ingress", "cidrBlocks": ["0.0.0.0/0"]}),
        "by a group's own rules": JudgedResource(
            GROUP, {"ingress": [{"cidrBlocks": ["10.0.0.0/16"]}, {"ipv6CidrBlocks": ["::/0"]}]}
        ),
        "into a group": _group_rule(direction="INGRESS", source="0.0.0.0/0", sourceType="CIDR_BLOCK"),
    },
    unknown={
        "a list of somebody's": JudgedResource(INGRESS_RULE, {"prefixListId": "pl-0a1b2c3d", "ipProtocol": "tcp"}),
        "source of another resource": _list_open_to("10.20.0.0/24", Unknown("ingressSecurityRules[1].source")),
        "addresses decided elsewhere": JudgedResource(INGRESS_RULE, {"cidrIpv4": Unknown("cidrIpv4")}),
    },
)
