# SPDX-License-Identifier: Apache-2.0
"""Rules of groups are resources of their own. Each may be narrow, and all together a way in for everybody."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from catalog.reason_tags import ALL_TCP
from components.values.projections import security_rules_of
from components.values.protocols import WITH_PORTS, protocol_name
from components.values.resource_types import types_of_part
from components.values.security_rules import LAST_PORT
from policies.addresses import hold_the_public
from policies.rule import (
    JudgedResource,
    JudgedStack,
    NotKnownError,
    StackRule,
    StackVerdict,
    Unknown,
    fail_because,
    unknown_because,
)
from policies.rules.all_tcp import NEARLY_ALL, ports_in

TYPES = types_of_part("security rule")
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"


def judge_parts_together(stack: JudgedStack) -> Iterator[StackVerdict]:
    """What a rule opens by itself, other rules of the pack judge."""
    sources: dict[str, JudgedResource] = {}
    ports: dict[Any, list[tuple[JudgedResource, tuple[int, int]]]] = defaultdict(list)
    for resource in stack.of_types(TYPES):
        try:
            for rule in security_rules_of(resource.type, resource.properties):
                if rule.direction != "ingress" or rule.peer_kind != "addresses":
                    continue
                if not hold_the_public((str(rule.peer),)):
                    sources[str(rule.peer)] = resource
                if rule.protocol in WITH_PORTS and not resource.tags.get(ALL_TCP):
                    first, last = rule.ports or (0, LAST_PORT)
                    if last - first < NEARLY_ALL:
                        ports[rule.protocol].append((resource, (int(first), int(last))))
        except NotKnownError as missing:
            yield resource, unknown_because(f"`{missing.path}` {missing.why}")
    if hold_the_public(sources):
        reason = f"with the other {len(sources) - 1} blocks of addresses of the stack's rules, it lets the internet in"
        yield _first_by_name(sources.values()), fail_because(reason)
    for protocol, parts in ports.items():
        if ports_in(opened for _, opened in parts) >= NEARLY_ALL:
            reason = f"with the other {len(parts) - 1} rules of the stack, it opens every port of"
            named = _first_by_name(resource for resource, _ in parts)
            yield named, fail_because(f"{reason} {protocol_name(protocol)}")


def _first_by_name(resources: Iterable[JudgedResource]) -> JudgedResource:
    """The engine's order is that in which a program happened to declare them."""
    return min(resources, key=lambda resource: resource.name)


def _stack_with_rules(*rules: dict[str, Any]) -> JudgedStack:
    given = ({"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIpv4": "10.20.0.0/16", **rule} for rule in rules)
    return JudgedStack(tuple(JudgedResource(INGRESS_RULE, rule, f"in-{number}") for number, rule in enumerate(given)))


RULE = StackRule(
    id="opened-in-parts",
    level="mandatory",
    asks="All rules of a stack together let in no internet, and open no protocol as a whole.",
    remedy="name the office networks that need it, and the ports of the frameworks; see ingress-from-anywhere and"
    " all-tcp",
    types=TYPES,
    judge=judge_parts_together,
    passes={
        "two offices": _stack_with_rules({"cidrIpv4": "203.0.113.0/24"}, {"cidrIpv4": "198.51.100.0/24"}),
        "two ranges": _stack_with_rules({"fromPort": 29400, "toPort": 29463}, {"fromPort": 6006, "toPort": 6006}),
        "members of one group": _stack_with_rules(
            *({"referencedSecurityGroupId": "sg-0", "cidrIpv4": None, "fromPort": 0, "toPort": 40_000},) * 2
        ),
    },
    fails={
        "the world in two halves of halves": _stack_with_rules(
            *({"cidrIpv4": f"{first}.0.0.0/8"} for first in range(64, 128))
        ),
        "every port in two halves": _stack_with_rules(
            {"fromPort": 0, "toPort": 32767}, {"fromPort": 32768, "toPort": 65535}
        ),
    },
    unknown={"a source decided elsewhere": _stack_with_rules({"cidrIpv4": Unknown("cidrIpv4")})},
)
