# SPDX-License-Identifier: Apache-2.0
"""Training nodes talk to one another and open connections to the outside. Nobody opens one to them."""

from typing import Any

from components.values.projections import security_rules_of, types_with_rules
from components.values.security_rules import SecurityRule, address_block
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because, verdict_on_every

LIST = "oci:Core/securityList:SecurityList"
GROUP_RULE = "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
RULE_OF_GROUP = "aws:ec2/securityGroupRule:SecurityGroupRule"
EGRESS_RULE = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
# No private network is larger than a /8. A wider block holds public addresses, even if it is only half of /0.
WIDEST_PRIVATE = 8


def judge(resource: JudgedResource) -> PolicyVerdict:
    return verdict_on_every(judge_ingress, security_rules_of(resource.type, resource.properties))


def judge_ingress(rule: SecurityRule) -> PolicyVerdict:
    return judge_source(rule.peer) if rule.direction == "ingress" and rule.peer_kind == "addresses" else PASS


def judge_source(source: Any) -> PolicyVerdict:
    return fail_because(f"lets {source} in") if source and is_anywhere(str(source)) else PASS


def is_anywhere(peer: str) -> bool:
    block = address_block(peer)
    return block is not None and block.prefixlen < WIDEST_PRIVATE


def _list_open_to(*sources: Any) -> JudgedResource:
    return JudgedResource(LIST, {"ingressSecurityRules": [{"source": source, "protocol": "6"} for source in sources]})


def _group_rule(**properties: Any) -> JudgedResource:
    return JudgedResource(GROUP_RULE, {"protocol": "6", **properties})


RULE = PolicyRule(
    id="ingress-from-anywhere",
    level="mandatory",
    asks="No rule lets the internet in.",
    remedy="name the subnet or the office network as the source; people look in through a bastion",
    types=tuple(token for token in types_with_rules() if token != EGRESS_RULE),
    judge=judge,
    passes={
        "within the subnet": _list_open_to("10.20.0.0/24"),
        "no rules": JudgedResource("oci:Core/defaultSecurityList:DefaultSecurityList", {}),
        "from Oracle's services": JudgedResource(
            LIST, {"ingressSecurityRules": [{"source": "all-services", "sourceType": "SERVICE_CIDR_BLOCK"}]}
        ),
        "a group's way out": _group_rule(direction="EGRESS", destination="0.0.0.0/0"),
        "from the office": JudgedResource(INGRESS_RULE, {"cidrIpv4": "203.0.113.0/24", "ipProtocol": "tcp"}),
        "from the group itself": JudgedResource(GROUP, {"ingress": [{"self": True, "protocol": "-1"}]}),
        "a rule of the way out": JudgedResource(RULE_OF_GROUP, {"type": "egress", "cidrBlocks": ["0.0.0.0/0"]}),
    },
    fails={
        "from anywhere": _list_open_to("10.20.0.0/24", "0.0.0.0/0"),
        "from anywhere by IPv6": _list_open_to("::/0"),
        "from one half of the world": _list_open_to("128.0.0.0/1"),
        "beside an unknown source": _list_open_to(Unknown("source"), "0.0.0.0/0"),
        "into a group by IPv6": JudgedResource(INGRESS_RULE, {"cidrIpv6": "::/0", "ipProtocol": "tcp"}),
        "by a rule of a group": JudgedResource(RULE_OF_GROUP, {"type": "ingress", "cidrBlocks": ["0.0.0.0/0"]}),
        "by a group's own rules": JudgedResource(
            GROUP, {"ingress": [{"cidrBlocks": ["10.0.0.0/16"]}, {"ipv6CidrBlocks": ["::/0"]}]}
        ),
        "into a group": _group_rule(direction="INGRESS", source="0.0.0.0/0", sourceType="CIDR_BLOCK"),
    },
    unknown={
        "source of another resource": _list_open_to("10.20.0.0/24", Unknown("ingressSecurityRules[1].source")),
        "addresses decided elsewhere": JudgedResource(INGRESS_RULE, {"cidrIpv4": Unknown("cidrIpv4")}),
    },
)
