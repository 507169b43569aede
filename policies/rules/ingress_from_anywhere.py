# SPDX-License-Identifier: Apache-2.0
"""Training nodes talk to one another and open connections to the outside. Nobody opens one to them."""

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

from policies.rule import JudgedResource, PolicyRule
from policies.verdicts import PASS, PolicyVerdict, Unknown, every, fail

LISTS = ("oci:Core/securityList:SecurityList", "oci:Core/defaultSecurityList:DefaultSecurityList")
GROUP_RULE = "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule"
# No private network is larger than a /8. A wider block holds public addresses, even if it is only half of /0.
WIDEST_PRIVATE = 8


def judge(resource: JudgedResource) -> PolicyVerdict:
    if resource.type == GROUP_RULE:
        ingress = resource.properties.get("direction") == "INGRESS"
        return judge_ingress(resource.properties) if ingress else PASS
    return every(judge_ingress, resource.properties.get("ingressSecurityRules") or ())


def judge_ingress(ingress: Mapping[str, Any]) -> PolicyVerdict:
    if (ingress.get("sourceType") or "CIDR_BLOCK") != "CIDR_BLOCK":
        return PASS
    source = ingress.get("source")
    return fail(f"lets {source} in") if source and is_anywhere(str(source)) else PASS


def is_anywhere(cidr: str) -> bool:
    try:
        return ip_network(cidr, strict=False).prefixlen < WIDEST_PRIVATE
    except ValueError:
        return False  # not an address block, so OCI itself refuses it


def _list(*sources: Any) -> JudgedResource:
    return JudgedResource(
        LISTS[0], {"ingressSecurityRules": [{"source": source, "protocol": "6"} for source in sources]}
    )


def _group_rule(**properties: Any) -> JudgedResource:
    return JudgedResource(GROUP_RULE, {"protocol": "6", **properties})


RULE = PolicyRule(
    id="ingress-from-anywhere",
    level="mandatory",
    asks="No rule lets the internet in.",
    remedy="name the subnet or the office network as the source; people look in through a bastion",
    types=(*LISTS, GROUP_RULE),
    judge=judge,
    passes={
        "within the subnet": _list("10.20.0.0/24"),
        "no rules": JudgedResource(LISTS[1], {}),
        "from Oracle's services": JudgedResource(
            LISTS[0], {"ingressSecurityRules": [{"source": "all-services", "sourceType": "SERVICE_CIDR_BLOCK"}]}
        ),
        "a group's way out": _group_rule(direction="EGRESS", destination="0.0.0.0/0"),
    },
    fails={
        "from anywhere": _list("10.20.0.0/24", "0.0.0.0/0"),
        "from anywhere by IPv6": _list("::/0"),
        "from one half of the world": _list("128.0.0.0/1"),
        "beside an unknown source": _list(Unknown("source"), "0.0.0.0/0"),
        "into a group": _group_rule(direction="INGRESS", source="0.0.0.0/0", sourceType="CIDR_BLOCK"),
    },
    unknown={"source of another resource": _list("10.20.0.0/24", Unknown("ingressSecurityRules[1].source"))},
)
