# SPDX-License-Identifier: Apache-2.0
"""Security groups. Every rule is a resource of its own, with its reason, so that adding one touches no other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from components.aws_dl1.context import resource_tags
from components.aws_dl1.plan import AwsNetworkPlan
from components.plan.model import INTERNET
from schemas.model import PortRange

HTTPS = PortRange(443, 443)
EVERYTHING = "-1"
# EC2 takes so many characters as the description of a rule, and few that are no letters.
LONGEST_DESCRIPTION = 255
_NOT_IN_DESCRIPTION = re.compile(r"[^A-Za-z0-9 ._:/()#,@\[\]+=&;{}!$*-]+")


@dataclass(frozen=True)
class Peer:
    """Whom the nodes reach: exactly one of block, group and prefix list. `key` is the name of the rule."""

    key: str
    why: str
    ports: PortRange
    cidr: str | None = None
    group: pulumi.Output[str] | None = None
    prefix_list: pulumi.Output[str] | None = None


def nodes_group(
    plan: AwsNetworkPlan,
    vpc: pulumi.Output[str],
    prefix: str,
    tags: Mapping[str, str],
    to_services: Iterable[Peer],
    opts: pulumi.ResourceOptions,
) -> pulumi.Output[str]:
    """The group of the nodes: everything from and to itself, what the stack lets in, and the ways to services."""
    group = _group("nodes", vpc, f"{prefix}-nodes", "Nodes of distributed training", tags, opts)
    # 0.0.0.0/0 does not cover EFA's traffic: only a rule that names the group itself does, in each direction.
    itself = {"security_group_id": group, "ip_protocol": EVERYTHING, "referenced_security_group_id": group}
    _ingress("nodes-from-nodes", itself, "everything between the nodes, as EFA needs it", tags, opts)
    _egress("nodes-to-nodes", itself, "everything between the nodes, as EFA needs it", tags, opts)
    for item in plan.ingress:
        source = f"{item.cidr}-{item.ports}"
        _ingress(f"from-{source}", _tcp(group, item.ports, cidr_ipv4=item.cidr), item.why, tags, opts)
    for peer in to_services:
        to = {"cidr_ipv4": peer.cidr, "referenced_security_group_id": peer.group, "prefix_list_id": peer.prefix_list}
        named = {key: value for key, value in to.items() if value is not None}
        _egress(f"to-{peer.key}", _tcp(group, peer.ports, **named), peer.why, tags, opts)
    for ports, why in _to_internet(plan).items():
        target = _tcp(group, ports, cidr_ipv4="0.0.0.0/0")
        _egress(f"to-internet-{ports}", target, "; ".join(why), tags, opts)
    return group


def endpoint_group(
    vpc: pulumi.Output[str], subnet: str, prefix: str, tags: Mapping[str, str], opts: pulumi.ResourceOptions
) -> pulumi.Output[str]:
    """The group of the endpoints: HTTPS from the nodes' subnet, and nothing else."""
    group = _group("endpoints", vpc, f"{prefix}-endpoints", "Endpoints of the services of AWS", tags, opts)
    ours = _tcp(group, HTTPS, cidr_ipv4=subnet)
    _ingress("endpoints-from-nodes", ours, "nodes reach the services of AWS", tags, opts)
    return group


def _group(
    key: str, vpc: pulumi.Output[str], name: str, why: str, tags: Mapping[str, str], opts: pulumi.ResourceOptions
) -> pulumi.Output[str]:
    return aws.ec2.SecurityGroup(
        key,
        name=name,
        description=why,
        vpc_id=vpc,
        # Two groups that name each other could not be deleted otherwise.
        revoke_rules_on_delete=True,
        tags=resource_tags(tags, name),
        opts=opts,
    ).id


def _to_internet(plan: AwsNetworkPlan) -> dict[PortRange, list[str]]:
    why: dict[PortRange, list[str]] = {}
    for rule in plan.rules:
        if rule.target == INTERNET:
            reasons = why.setdefault(rule.ports or PortRange(0, 65535), [])
            reasons += [rule.why] if rule.why not in reasons else []
    return why


def _tcp(group: pulumi.Output[str], ports: PortRange, **peer: Any) -> dict[str, Any]:
    return {
        "security_group_id": group,
        "ip_protocol": "tcp",
        "from_port": ports.first,
        "to_port": ports.last,
        **peer,
    }


def _described(why: str) -> str:
    return _NOT_IN_DESCRIPTION.sub(" ", why)[:LONGEST_DESCRIPTION]


def _ingress(
    name: str, rule: Mapping[str, Any], why: str, tags: Mapping[str, str], opts: pulumi.ResourceOptions
) -> None:
    described = {"description": _described(why), "tags": dict(tags)}
    aws.vpc.SecurityGroupIngressRule(name, **rule, **described, opts=opts)


def _egress(
    name: str, rule: Mapping[str, Any], why: str, tags: Mapping[str, str], opts: pulumi.ResourceOptions
) -> None:
    described = {"description": _described(why), "tags": dict(tags)}
    aws.vpc.SecurityGroupEgressRule(name, **rule, **described, opts=opts)
