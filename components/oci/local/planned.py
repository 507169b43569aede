# SPDX-License-Identifier: Apache-2.0
"""Which rules and statements OCI's plans ask for, as a rehearsal compares them with what was used."""

from __future__ import annotations

from components.oci import rules as oci_rules
from components.oci import statements as oci_statements
from components.oci.plan import OciPlan
from rehearsal.planned import PlannedNeeds, PlannedRule, PlannedStatement


def planned_needs(plan: OciPlan, network_of: OciPlan | None = None, access_of: OciPlan | None = None) -> PlannedNeeds:
    """From plans alone, whatever a cloud made of them. The others are of stacks from which this one takes a part."""
    net, access = network_of or plan, access_of or plan
    network, lines = oci_rules.security_rules(net.network), oci_statements.policy_lines(access)
    rules = [
        PlannedRule(direction, rule.peer, (rule.ports.first, rule.ports.last) if rule.ports else None, rule.description)
        for direction, side in (("ingress", network.ingress), ("egress", network.egress))
        for rule in side
    ]
    return PlannedNeeds(
        least=access.access.mode == "least-privilege" and net.network.mode == "least",
        rules=tuple(rules),
        statements=tuple(PlannedStatement(line.text, line.why, line.trust) for line in lines),
        list_tags={**net.tags, **oci_rules.list_tags(net.network)},
        policy_tags={**access.tags, **oci_statements.policy_tags(access, lines)},
    )
