# SPDX-License-Identifier: Apache-2.0
"""Training nodes talk to one another and open connections to the outside. Nobody opens one to them."""

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

from policies.rule import PASS, Judge, JudgedResource, PolicyRule, PolicyVerdict, Unknown, by_type, every, fail

LISTS = ("oci:Core/securityList:SecurityList", "oci:Core/defaultSecurityList:DefaultSecurityList")
GROUP_RULE = "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule"
GROUPS = ("aws:ec2/securityGroup:SecurityGroup", "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup")
RULE_OF_GROUP = "aws:ec2/securityGroupRule:SecurityGroupRule"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
# No private network is larger than a /8. A wider block holds public addresses, even if it is only half of /0.
WIDEST_PRIVATE = 8


def judge_list(resource: JudgedResource) -> PolicyVerdict:
    return every(judge_ingress, resource.properties.get("ingressSecurityRules") or ())


def judge_group_rule(resource: JudgedResource) -> PolicyVerdict:
    return judge_ingress(resource.properties) if resource.properties.get("direction") == "INGRESS" else PASS


def judge_group(resource: JudgedResource) -> PolicyVerdict:
    return every(judge_blocks, resource.properties.get("ingress") or ())


def judge_rule(resource: JudgedResource) -> PolicyVerdict:
    return judge_blocks(resource.properties) if resource.properties.get("type") == "ingress" else PASS


def judge_ingress_rule(resource: JudgedResource) -> PolicyVerdict:
    return every(judge_source, [resource.properties.get(key) for key in ("cidrIpv4", "cidrIpv6")])


def judge_ingress(ingress: Mapping[str, Any]) -> PolicyVerdict:
    if (ingress.get("sourceType") or "CIDR_BLOCK") != "CIDR_BLOCK":
        return PASS
    return judge_source(ingress.get("source"))


def judge_blocks(ingress: Mapping[str, Any]) -> PolicyVerdict:
    blocks = [ingress.get(key) or () for key in ("cidrBlocks", "ipv6CidrBlocks")]
    return every(lambda listed: every(judge_source, listed), blocks)


def judge_source(source: Any) -> PolicyVerdict:
    return fail(f"lets {source} in") if source and is_anywhere(str(source)) else PASS


def is_anywhere(cidr: str) -> bool:
    try:
        return ip_network(cidr, strict=False).prefixlen < WIDEST_PRIVATE
    except ValueError:
        return False  # not an address block, so the cloud itself refuses it


def _list(*sources: Any) -> JudgedResource:
    return JudgedResource(
        LISTS[0], {"ingressSecurityRules": [{"source": source, "protocol": "6"} for source in sources]}
    )


def _group_rule(**properties: Any) -> JudgedResource:
    return JudgedResource(GROUP_RULE, {"protocol": "6", **properties})


ROWS: Mapping[str, Judge] = {
    **dict.fromkeys(LISTS, judge_list),
    GROUP_RULE: judge_group_rule,
    **dict.fromkeys(GROUPS, judge_group),
    RULE_OF_GROUP: judge_rule,
    INGRESS_RULE: judge_ingress_rule,
}

RULE = PolicyRule(
    id="ingress-from-anywhere",
    level="mandatory",
    asks="No rule lets the internet in.",
    remedy="name the subnet or the office network as the source; people look in through a bastion",
    types=tuple(ROWS),
    judge=by_type(ROWS),
    passes={
        "within the subnet": _list("10.20.0.0/24"),
        "no rules": JudgedResource(LISTS[1], {}),
        "from Oracle's services": JudgedResource(
            LISTS[0], {"ingressSecurityRules": [{"source": "all-services", "sourceType": "SERVICE_CIDR_BLOCK"}]}
        ),
        "a group's way out": _group_rule(direction="EGRESS", destination="0.0.0.0/0"),
        "from the office": JudgedResource(INGRESS_RULE, {"cidrIpv4": "203.0.113.0/24", "ipProtocol": "tcp"}),
        "from the group itself": JudgedResource(GROUPS[0], {"ingress": [{"self": True, "protocol": "-1"}]}),
        "a rule of the way out": JudgedResource(RULE_OF_GROUP, {"type": "egress", "cidrBlocks": ["0.0.0.0/0"]}),
    },
    fails={
        "from anywhere": _list("10.20.0.0/24", "0.0.0.0/0"),
        "from anywhere by IPv6": _list("::/0"),
        "from one half of the world": _list("128.0.0.0/1"),
        "beside an unknown source": _list(Unknown("source"), "0.0.0.0/0"),
        "into a group by IPv6": JudgedResource(INGRESS_RULE, {"cidrIpv6": "::/0", "ipProtocol": "tcp"}),
        "by a rule of a group": JudgedResource(RULE_OF_GROUP, {"type": "ingress", "cidrBlocks": ["0.0.0.0/0"]}),
        "by a group's own rules": JudgedResource(
            GROUPS[0], {"ingress": [{"cidrBlocks": ["10.0.0.0/16"]}, {"ipv6CidrBlocks": ["::/0"]}]}
        ),
        "into a group": _group_rule(direction="INGRESS", source="0.0.0.0/0", sourceType="CIDR_BLOCK"),
    },
    unknown={
        "source of another resource": _list("10.20.0.0/24", Unknown("ingressSecurityRules[1].source")),
        "addresses decided elsewhere": JudgedResource(INGRESS_RULE, {"cidrIpv4": Unknown("cidrIpv4")}),
    },
)
