# SPDX-License-Identifier: Apache-2.0
"""Frameworks that pick ports themselves need all ports open. A security list has to name these frameworks."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from catalog import frameworks
from catalog.reason_tags import ALL_TCP, PROOF_OF_CONCEPT
from components.values.projections import security_rules_of, types_with_rules
from components.values.protocols import TCP, WITH_PORTS
from components.values.security_rules import LAST_PORT, SecurityRule
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

# A rule of a group of OCI has no tags to give a reason in. A default group of AWS exists anyway.
NOT_JUDGED = (
    "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule",
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
)
LIST = "oci:Core/securityList:SecurityList"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
EGRESS_RULE = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
# Practically all 65535: no system picks ports from a range as wide as this.
NEARLY_ALL = 60_000


def judge_opened_ports(resource: JudgedResource) -> PolicyVerdict:
    """All rules of a resource are judged together: several ranges can be every port."""
    opened: dict[Any, list[tuple[int, int]]] = defaultdict(list)

    def read_ports_of_rule(rule: SecurityRule) -> PolicyVerdict:
        # For EFA, a rule may open every port to a group.
        if rule.peer_kind in ("group", "prefix list") or rule.protocol not in (None, *WITH_PORTS):
            return PASS
        first, last = (0, LAST_PORT) if rule.protocol is None or rule.ports is None else rule.ports
        opened[rule.direction, rule.protocol].append((int(first), int(last)))
        return PASS

    read = verdict_on_every(read_ports_of_rule, security_rules_of(resource.type, resource.properties))
    every = [protocol for (_, protocol), ranges in opened.items() if ports_in(ranges) >= NEARLY_ALL]
    return needed_by(str(resource.tags.get(ALL_TCP) or ""), every) if every else read


def ports_in(ranges: Iterable[tuple[int, int]]) -> int:
    """The number of ports in ranges that may overlap."""
    number, after = 0, 0
    for first, last in sorted(ranges):
        number += max(0, last + 1 - max(first, after))
        after = max(after, last + 1)
    return number


def needed_by(named: str, protocols: Sequence[int | None]) -> PolicyVerdict:
    """Whether a framework named in the tag needs every port."""
    opens = f"opens every {'TCP' if {None, TCP} & set(protocols) else 'UDP'} port"
    names = [name for name in named.replace(",", " ").split() if name]
    own = [name for name in names if name not in (PROOF_OF_CONCEPT, *frameworks.framework_names())]
    if any(name == PROOF_OF_CONCEPT or (name not in own and picks_ports(name)) for name in names):
        return PASS
    if own:
        return unknown_because(f"{opens} for {', '.join(own)}, a framework the catalog does not know")
    why = f", but the ports of {', '.join(names)} can be chosen" if names else f" and has no tag `{ALL_TCP}`"
    return fail_because(f"{opens}{why}")


def picks_ports(name: str) -> bool:
    """Whether the framework always uses a port that its options cannot choose, in any strategy."""
    document = frameworks.framework_document(name)
    strategies = (None, *document.get("strategies", {}))
    rows = (row for strategy in strategies for row in frameworks.framework_row(name, strategy).ports)
    return any(row.when is None and (row.default == "all" or row.pinned == "kernel-range") for row in rows)


def _rule_list(tag: Any = None, **rule: Any) -> JudgedResource:
    tags = {ALL_TCP: tag} if tag else {}
    rules = [{"source": "10.20.0.0/24", "protocol": "6", **rule}]
    return JudgedResource(LIST, {"ingressSecurityRules": rules, "freeformTags": tags})


def _egress_rule(**rule: Any) -> JudgedResource:
    return JudgedResource(EGRESS_RULE, {"ipProtocol": "-1", **rule})


RULE = PolicyRule(
    id="all-tcp",
    level="mandatory",
    asks="Every port of TCP or UDP is open only where a framework needs that.",
    remedy=f"open the framework's own ports, or say who needs all of them in the tag `{ALL_TCP}`; where EFA needs all,"
    " name the group itself",
    types=types_with_rules(*NOT_JUDGED),
    judge=judge_opened_ports,
    passes={
        "a port": _rule_list(tcpOptions={"min": 8786, "max": 8786}),
        "Horovod": _rule_list("horovod"),
        "Horovod beside Dask": _rule_list("dask, horovod"),
        "a proof of concept": _rule_list(PROOF_OF_CONCEPT),
        "ICMP": _rule_list(protocol="1"),
        "EFA, within the group": _egress_rule(referencedSecurityGroupId="sg-0a1b2c3d"),
        "EFA, by a group's own rule": JudgedResource(GROUP, {"ingress": [{"protocol": "-1", "self": True}]}),
        "EFA, with empty lists of addresses": JudgedResource(
            GROUP, {"ingress": [{"protocol": "-1", "self": True, "cidrBlocks": [], "ipv6CidrBlocks": []}]}
        ),
        "a port on the way out": _egress_rule(ipProtocol="tcp", fromPort=443, toPort=443, cidrIpv4="0.0.0.0/0"),
    },
    fails={
        "without a reason": _rule_list(),
        "all ports by numbers": _rule_list(tcpOptions={"min": 1024, "max": 65535}),
        "in two halves": JudgedResource(
            LIST,
            {
                "ingressSecurityRules": [
                    {"source": "10.20.0.0/24", "protocol": "6", "tcpOptions": {"min": first, "max": first + 32767}}
                    for first in (0, 32768)
                ]
            },
        ),
        "every port of UDP": _rule_list(protocol="17"),
        "all protocols": _rule_list(protocol="all"),
        "for a framework with settable ports": _rule_list("dask"),
        "all to addresses": _egress_rule(cidrIpv4="10.20.0.0/24"),
        "all by a group's own rule": JudgedResource(
            GROUP, {"ingress": [{"protocol": "tcp", "fromPort": 0, "toPort": 65535, "cidrBlocks": ["10.20.0.0/16"]}]}
        ),
        "on the way out": JudgedResource(
            LIST, {"egressSecurityRules": [{"destination": "0.0.0.0/0", "protocol": "all"}]}
        ),
    },
    unknown={
        "ports of another resource": _rule_list(tcpOptions={"min": Unknown("min"), "max": 9000}),
        "a team's own framework": _rule_list("ray-of-ours"),
        "a protocol of another resource": _egress_rule(ipProtocol=Unknown("ipProtocol"), cidrIpv4="0.0.0.0/0"),
    },
)
