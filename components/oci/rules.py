# SPDX-License-Identifier: Apache-2.0
"""A plan's port rules as the rules of a security list: explicit, without duplicates, always in the same order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from catalog.reason_tags import ALL_TCP, OPENED_FOR
from components.oci.plan import OciNetworkPlan
from components.plan.model import INTERNET, SERVICES, PortRule
from components.values.protocols import parse_protocol
from components.values.security_rules import SecurityRule
from schemas.model import PortRange

ANYWHERE = "0.0.0.0/0"
# OCI allows 255 characters in the description of a rule.
LONGEST_DESCRIPTION = 255
# OCI's default limit for each direction of a list. A subnet can have five lists.
RULES_PER_LIST = 200

# A protocol and a port range -> the reasons for it, each reason once.
Reasons = dict[tuple[str, PortRange | None], dict[str, None]]


@dataclass(frozen=True, slots=True)
class SecurityRules:
    ingress: tuple[SecurityRule, ...]
    egress: tuple[SecurityRule, ...]


def security_rules(network: OciNetworkPlan) -> SecurityRules:
    """All nodes of a subnet share one list, so rules between roles become rules within the subnet, in both
    directions."""
    # The documents' rules stay separate, so that people can check a network against the documents.
    inside = [rule for rule in network.rules if rule.target not in (SERVICES, INTERNET)]
    to_services = [rule for rule in network.rules if rule.target == SERVICES]
    to_internet = [rule for rule in network.rules if rule.target == INTERNET]
    within = SecurityRule(direction="egress", peer=network.subnet_cidr)

    def rules_inside(like: SecurityRule) -> tuple[SecurityRule, ...]:
        return (
            _ordered_rules(_reasons_by_range(inside), like)
            if network.mode == "documented"
            else _rules_without_covered(inside, like)
        )

    egress = (
        *rules_inside(within),
        *_rules_without_covered(to_services, replace(within, peer=SERVICES, peer_kind="services")),
        *_rules_without_covered(to_internet, replace(within, peer=ANYWHERE)),
    )
    return SecurityRules(rules_inside(replace(within, direction="ingress")), egress)


def security_lists(rules: SecurityRules) -> tuple[SecurityRules, ...]:
    """The rules of each security list. There is one list, unless there are more rules than OCI allows in one."""
    longest = max(len(rules.ingress), len(rules.egress), 1)
    starts = range(0, longest, RULES_PER_LIST)
    return tuple(
        SecurityRules(rules.ingress[at : at + RULES_PER_LIST], rules.egress[at : at + RULES_PER_LIST]) for at in starts
    )


def list_tags(network: OciNetworkPlan) -> dict[str, str]:
    """Tags with the frameworks that need all ports, and those of jobs in other stacks, if there are any.

    People and policies look for the reason on the list.
    """
    needed_by = sorted({rule.framework or network.mode for rule in network.rules if is_all_tcp(rule)})
    reasons = {ALL_TCP: ", ".join(needed_by), OPENED_FOR: ", ".join(sorted(network.frameworks))}
    return {tag: reason for tag, reason in reasons.items() if reason}


def is_all_tcp(rule: PortRule) -> bool:
    return rule.ports is None and rule.protocol == "tcp"


def _rules_without_covered(rules: Iterable[PortRule], like: SecurityRule) -> tuple[SecurityRule, ...]:
    """One rule for each range that is not inside a wider one, because such rules would have no effect."""
    reasons_of = _reasons_by_range(rules)
    why: Reasons = {key: reasons for key, reasons in reasons_of.items() if key[1] is None}
    for (protocol, ports), reasons in reasons_of.items():
        if ports is not None and (protocol, None) not in why:
            covering = [one for other, one in reasons_of if other == protocol and one and one.covers(ports)]
            why.setdefault((protocol, max(covering, key=lambda one: one.size)), {}).update(reasons)
    return _ordered_rules(why, like)


def _reasons_by_range(rules: Iterable[PortRule]) -> Reasons:
    reasons_of: Reasons = {}
    for rule in rules:
        reasons_of.setdefault((rule.protocol, rule.ports), {})[rule.why] = None
    return reasons_of


def _ordered_rules(why: Reasons, like: SecurityRule) -> tuple[SecurityRule, ...]:
    order = sorted(why, key=lambda key: (key[0], (key[1].first, key[1].last) if key[1] else (0, 0)))
    texts = {key: "; ".join(reasons) for key, reasons in why.items()}
    return tuple(
        replace(
            like,
            protocol=parse_protocol(key[0]),
            ports=(key[1].first, key[1].last) if key[1] else None,
            description=text if len(text) <= LONGEST_DESCRIPTION else text[: LONGEST_DESCRIPTION - 1] + "…",
        )
        for key in order
        for text in [texts[key]]
    )
