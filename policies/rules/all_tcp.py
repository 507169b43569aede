# SPDX-License-Identifier: Apache-2.0
"""Frameworks that pick ports themselves need all ports open. A security list has to name these frameworks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from catalog import frameworks
from policies.rule import PASS, Judge, JudgedResource, PolicyRule, PolicyVerdict, Unknown, by_type, every, fail, unknown

LISTS = ("oci:Core/securityList:SecurityList", "oci:Core/defaultSecurityList:DefaultSecurityList")
GROUP = "aws:ec2/securityGroup:SecurityGroup"
GROUP_RULES = (
    "aws:ec2/securityGroupRule:SecurityGroupRule",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
)
# The properties in which rules of security groups name addresses. Other rules name a group.
ADDRESSES = ("cidrIpv4", "cidrIpv6", "cidrBlocks", "ipv6CidrBlocks")
# The tag with the reason: names of frameworks, or the mode in which everything is open.
TAG = "all-tcp"
PROOF_OF_CONCEPT = "proof-of-concept"
TCP, ALL_PROTOCOLS = "6", "all"
# Practically all 65535: no system picks ports from a range as wide as this.
NEARLY_ALL = 60_000


def judge_list(resource: JudgedResource) -> PolicyVerdict:
    rules = [
        *(resource.properties.get("ingressSecurityRules") or ()),
        *(resource.properties.get("egressSecurityRules") or ()),
    ]
    return judge_rules(resource, rules, is_all_tcp)


def judge_group(resource: JudgedResource) -> PolicyVerdict:
    rules = [*(resource.properties.get("ingress") or ()), *(resource.properties.get("egress") or ())]
    return judge_rules(resource, rules, is_all_of_aws)


def judge_group_rule(resource: JudgedResource) -> PolicyVerdict:
    return judge_rules(resource, [resource.properties], is_all_of_aws)


def judge_rules(
    resource: JudgedResource, rules: Sequence[Mapping[str, Any]], opens: Callable[[Mapping[str, Any]], bool]
) -> PolicyVerdict:
    opened = every(lambda rule: fail("opens every TCP port") if opens(rule) else PASS, rules)
    return needed_by(str(resource.tags.get(TAG) or "")) if opened.outcome == "fail" else opened


def is_all_tcp(rule: Mapping[str, Any]) -> bool:
    if rule.get("protocol") not in (TCP, ALL_PROTOCOLS):
        return False
    ports = rule.get("tcpOptions")
    if rule.get("protocol") == ALL_PROTOCOLS or not ports:
        return True
    return int(ports.get("max") or 65535) - int(ports.get("min") or 1) >= NEARLY_ALL


def is_all_of_aws(rule: Mapping[str, Any]) -> bool:
    """Whether a rule of a security group opens all ports to addresses. For EFA, it may open all to a group."""
    if not any(rule.get(key) is not None for key in ADDRESSES):
        return False
    protocol = str(rule.get("ipProtocol") or rule.get("protocol"))
    if protocol not in ("tcp", TCP, "-1", ALL_PROTOCOLS):
        return False
    if protocol in ("-1", ALL_PROTOCOLS):
        return True
    return int(rule.get("toPort") or 0) - int(rule.get("fromPort") or 0) >= NEARLY_ALL


def needed_by(named: str) -> PolicyVerdict:
    """Whether a framework named in the tag needs every port."""
    names = [name for name in named.replace(",", " ").split() if name]
    own = [name for name in names if name not in (PROOF_OF_CONCEPT, *frameworks.names())]
    if any(name == PROOF_OF_CONCEPT or (name not in own and picks_ports(name)) for name in names):
        return PASS
    if own:
        return unknown(f"opens every TCP port for {', '.join(own)}, a framework the catalog does not know")
    why = f", but the ports of {', '.join(names)} can be chosen" if names else f" and has no tag `{TAG}`"
    return fail(f"opens every TCP port{why}")


def picks_ports(name: str) -> bool:
    """Whether the framework always uses a port that its options cannot choose, in any strategy."""
    document = frameworks.document(name)
    strategies = (None, *document.get("strategies", {}))
    rows = (row for strategy in strategies for row in frameworks.framework(name, strategy).ports)
    return any(row.when is None and (row.default == "all" or row.pinned == "kernel-range") for row in rows)


def _list(tag: Any = None, **rule: Any) -> JudgedResource:
    tags = {TAG: tag} if tag else {}
    rules = [{"source": "10.20.0.0/24", "protocol": TCP, **rule}]
    return JudgedResource(LISTS[0], {"ingressSecurityRules": rules, "freeformTags": tags})


def _egress(**rule: Any) -> JudgedResource:
    return JudgedResource(GROUP_RULES[2], {"ipProtocol": "-1", **rule})


ROWS: Mapping[str, Judge] = {
    **dict.fromkeys(LISTS, judge_list),
    GROUP: judge_group,
    **dict.fromkeys(GROUP_RULES, judge_group_rule),
}

RULE = PolicyRule(
    id="all-tcp",
    level="mandatory",
    asks="Every TCP port is open only where a framework needs that.",
    remedy=f"open the framework's own ports, or say who needs all of them in the tag `{TAG}`; where EFA needs all, name"
    " the group itself",
    types=tuple(ROWS),
    judge=by_type(ROWS),
    passes={
        "a port": _list(tcpOptions={"min": 8786, "max": 8786}),
        "Horovod": _list("horovod"),
        "Horovod beside Dask": _list("dask, horovod"),
        "a proof of concept": _list(PROOF_OF_CONCEPT),
        "ICMP": _list(protocol="1"),
        "EFA, within the group": _egress(referencedSecurityGroupId="sg-0a1b2c3d"),
        "EFA, by a group's own rule": JudgedResource(GROUP, {"ingress": [{"protocol": "-1", "self": True}]}),
        "a port on the way out": _egress(ipProtocol="tcp", fromPort=443, toPort=443, cidrIpv4="0.0.0.0/0"),
    },
    fails={
        "without a reason": _list(),
        "all ports by numbers": _list(tcpOptions={"min": 1024, "max": 65535}),
        "all protocols": _list(protocol=ALL_PROTOCOLS),
        "for a framework with settable ports": _list("dask"),
        "all to addresses": _egress(cidrIpv4="10.20.0.0/24"),
        "all by a group's own rule": JudgedResource(
            GROUP, {"ingress": [{"protocol": "tcp", "fromPort": 0, "toPort": 65535, "cidrBlocks": ["10.20.0.0/16"]}]}
        ),
        "on the way out": JudgedResource(
            LISTS[0], {"egressSecurityRules": [{"destination": "0.0.0.0/0", "protocol": "all"}]}
        ),
    },
    unknown={
        "ports of another resource": _list(tcpOptions={"min": Unknown("min"), "max": 9000}),
        "a team's own framework": _list("ray-of-ours"),
        "a protocol of another resource": _egress(ipProtocol=Unknown("ipProtocol"), cidrIpv4="0.0.0.0/0"),
    },
)
