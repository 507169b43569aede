# SPDX-License-Identifier: Apache-2.0
"""Which rules and statements AWS's plans ask for, as a rehearsal compares them with what was used."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from components.aws_dl1.local.grounds import canonical
from components.aws_dl1.plan import AwsDl1Plan
from components.aws_dl1.statements import AwsStatement, policies
from components.plan.model import INTERNET
from components.platform.mutations import PolicyInForce
from components.platform.planned import PlannedNeeds, PlannedRule, PlannedStatement
from components.platform.traffic import EVERY_PROTOCOL, RuleInForce, is_network
from policies.rule import JudgedResource, refusing

_HTTPS = (443, 443)
_RULE = "aws:vpc/securityGroup{}Rule:SecurityGroup{}Rule"
_POLICY = "aws:iam/policy:Policy"
_BETWEEN = "everything between the nodes, as EFA needs it"


class AwsPlannedNeeds(PlannedNeeds):
    """Security groups and policies of IAM in place of lists and sentences."""

    __slots__ = ()

    def beyond_grants(self, text: str) -> tuple[str, ...]:
        planned = {part for one in self.statements for part in _parts(json.loads(one.text))}
        return tuple(sorted(f"{action} on {on}" for action, on, _ in _parts(json.loads(text)) - planned))

    def refused_list(self, in_force: Iterable[RuleInForce]) -> frozenset[str]:
        return frozenset().union(*(refusing(self._group_rule(rule)) for rule in in_force))

    def refused_policies(self, policies: Iterable[PolicyInForce]) -> frozenset[str]:
        refused: set[str] = set()
        # One without statements is none.
        for policy in (one for one in policies if one.statements):
            body = {"Version": "2012-10-17", "Statement": [json.loads(text) for text in policy.statements]}
            properties = {"policy": json.dumps(body), "tags": dict(self.policy_tags)}
            refused |= refusing(JudgedResource(_POLICY, properties))
        return frozenset(refused)

    def _group_rule(self, rule: RuleInForce) -> JudgedResource:
        side = rule.direction.capitalize()
        kind = "cidrIpv4" if is_network(rule.peer) else _NAMED[rule.peer.partition("-")[0]]
        protocol = "-1" if rule.protocol == EVERY_PROTOCOL else rule.protocol
        ports = {"fromPort": rule.ports[0], "toPort": rule.ports[1]} if rule.ports else {}
        more = {"description": rule.description, "tags": dict(self.list_tags)}
        return JudgedResource(_RULE.format(side, side), {kind: rule.peer, "ipProtocol": protocol, **ports, **more})


_NAMED = {"sg": "referencedSecurityGroupId", "pl": "prefixListId"}


def planned_needs(plan: AwsDl1Plan, network_of: AwsDl1Plan, access_of: AwsDl1Plan) -> PlannedNeeds:
    """From plans alone, whatever a cloud made of them. The others are of stacks from which this one takes a part."""
    statements = [one for policy in policies(access_of) for one in policy.statements]
    return AwsPlannedNeeds(
        least=access_of.access.mode == "least-privilege" and network_of.network.make_security_group,
        rules=tuple(_rules(network_of)),
        statements=tuple(map(_planned, statements)),
        list_tags=network_of.tags,
        policy_tags=access_of.tags,
    )


def _planned(statement: AwsStatement) -> PlannedStatement:
    return PlannedStatement(canonical(statement.document()), statement.why)


def _rules(plan: AwsDl1Plan) -> Iterator[PlannedRule]:
    """The rules of the nodes' group; those of an existing one are its owner's."""
    network, prefix = plan.network, f"{plan.team}-{plan.environment}"
    if not network.create or not network.make_security_group:
        return
    for direction in ("ingress", "egress"):
        yield PlannedRule(direction, f"{prefix}-nodes", None, _BETWEEN)
    for item in network.ingress:
        yield PlannedRule("ingress", item.cidr, (item.ports.first, item.ports.last), item.why)
    if network.vpc:
        yield PlannedRule("egress", "0.0.0.0/0", _HTTPS, "services of AWS, where the routes of the VPC lead")
        return
    yield PlannedRule("egress", f"com.amazonaws.{plan.region}.s3", _HTTPS, "the bucket, through its gateway endpoint")
    if network.endpoints:
        yield PlannedRule("egress", f"{prefix}-endpoints", _HTTPS, "services of AWS, through their endpoints")
    for rule in network.rules:
        if rule.target == INTERNET:
            ports = (rule.ports.first, rule.ports.last) if rule.ports else (0, 65535)
            yield PlannedRule("egress", "0.0.0.0/0", ports, rule.why)


def _parts(statement: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    condition = json.dumps(statement.get("Condition", {}), sort_keys=True)
    return {
        (action, on, condition)
        for action in _texts(statement.get("Action", []))
        for on in _texts(statement.get("Resource", []))
    }


def _texts(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
