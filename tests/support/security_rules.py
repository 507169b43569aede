# SPDX-License-Identifier: Apache-2.0
"""Rules of security groups, as the local AWS tells the hosts."""

from __future__ import annotations

from components.aws.types.security_rules import read_security_rules
from components.values.security_rules import Direction, SecurityRule


def group_rule(
    protocol: str, peer: str, first: int | None = None, last: int | None = None, direction: Direction = "ingress"
) -> SecurityRule:
    key = "referencedSecurityGroupId" if peer.startswith("sg-") else "cidrIpv4"
    row = {"ipProtocol": protocol, "fromPort": first, "toPort": last, key: peer}
    (rule,) = read_security_rules(row, direction)
    return rule
