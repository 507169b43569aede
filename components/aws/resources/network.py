# SPDX-License-Identifier: Apache-2.0
"""VPC, the nodes' subnet in a zone that offers the machines, and routes to AWS's services and the internet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from catalog.reason_tags import OPEN_PORT, PUBLIC_ADDRESS
from components.aws.plan import AwsNetworkPlan
from components.aws.resources.context import resource_tags
from components.plan.model import INTERNET
from schemas.model import PortRange

HTTPS = PortRange(443, 443)
EVERYTHING = "-1"
# The longest description of a rule in EC2, and the characters that it must not have.
LONGEST_DESCRIPTION = 255
_NOT_IN_DESCRIPTION = re.compile(r"[^A-Za-z0-9 ._:/()#,@\[\]+=&;{}!$*-]+")
ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True)
class Peer:
    """The peer of a rule: exactly one of block, group and prefix list. `key`: the name of the rule."""

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
    """The security group of the nodes: all traffic from and to itself, what the stack file lets in, and access to
    services."""
    group = _security_group("nodes", vpc, f"{prefix}-nodes", "Nodes of distributed training", tags, opts)
    # 0.0.0.0/0 does not cover EFA's traffic: only a rule that names the group itself does, in each direction.
    itself = {"security_group_id": group, "ip_protocol": EVERYTHING, "referenced_security_group_id": group}
    _ingress_rule("nodes-from-nodes", itself, "everything between the nodes, as EFA needs it", tags, opts)
    _egress_rule("nodes-to-nodes", itself, "everything between the nodes, as EFA needs it", tags, opts)
    for item in plan.ingress:
        source = f"{item.cidr}-{item.ports}"
        chosen = {**tags, OPEN_PORT: "chosen"}
        _ingress_rule(f"from-{source}", _tcp_rule(group, item.ports, cidr_ipv4=item.cidr), item.why, chosen, opts)
    for peer in to_services:
        to = {"cidr_ipv4": peer.cidr, "referenced_security_group_id": peer.group, "prefix_list_id": peer.prefix_list}
        named = {key: value for key, value in to.items() if value is not None}
        _egress_rule(f"to-{peer.key}", _tcp_rule(group, peer.ports, **named), peer.why, tags, opts)
    for (protocol, ports), why in _reasons_by_internet_rule(plan).items():
        target = {**_tcp_rule(group, ports, cidr_ipv4="0.0.0.0/0"), "ip_protocol": protocol}
        # Rules of TCP had no protocol in their names at first, and a new name would be a new rule.
        name = f"{ports}" if protocol == "tcp" else f"{protocol}-{ports}"
        _egress_rule(f"to-internet-{name}", target, "; ".join(why), tags, opts)
    return group


def endpoint_group(
    vpc: pulumi.Output[str], subnet: str, prefix: str, tags: Mapping[str, str], opts: pulumi.ResourceOptions
) -> pulumi.Output[str]:
    """The security group of the endpoints: HTTPS from the nodes' subnet, and nothing else."""
    group = _security_group("endpoints", vpc, f"{prefix}-endpoints", "Endpoints of the services of AWS", tags, opts)
    ours = _tcp_rule(group, HTTPS, cidr_ipv4=subnet)
    for_endpoints = {**tags, OPEN_PORT: "endpoints"}
    _ingress_rule("endpoints-from-nodes", ours, "nodes reach the services of AWS", for_endpoints, opts)
    return group


def _security_group(
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


def _reasons_by_internet_rule(plan: AwsNetworkPlan) -> dict[tuple[str, PortRange], list[str]]:
    why: dict[tuple[str, PortRange], list[str]] = {}
    for rule in plan.rules:
        if rule.target == INTERNET:
            reasons = why.setdefault((rule.protocol, rule.ports or PortRange(0, 65535)), [])
            reasons += [rule.why] if rule.why not in reasons else []
    return why


def _tcp_rule(group: pulumi.Output[str], ports: PortRange, **peer: Any) -> dict[str, Any]:
    return {"security_group_id": group, "ip_protocol": "tcp", "from_port": ports.first, "to_port": ports.last, **peer}


def _rule_description(why: str) -> str:
    return _NOT_IN_DESCRIPTION.sub(" ", why)[:LONGEST_DESCRIPTION]


def _ingress_rule(
    name: str, rule: Mapping[str, Any], why: str, tags: Mapping[str, str], opts: pulumi.ResourceOptions
) -> None:
    described = {"description": _rule_description(why), "tags": dict(tags)}
    aws.vpc.SecurityGroupIngressRule(name, **rule, **described, opts=opts)


def _egress_rule(
    name: str, rule: Mapping[str, Any], why: str, tags: Mapping[str, str], opts: pulumi.ResourceOptions
) -> None:
    described = {"description": _rule_description(why), "tags": dict(tags)}
    aws.vpc.SecurityGroupEgressRule(name, **rule, **described, opts=opts)


@dataclass(frozen=True)
class NetworkArgs:
    plan: AwsNetworkPlan
    region: str
    zone: str
    prefix: str
    tags: Mapping[str, str]
    # Policies of endpoints, by their services.
    policies: Mapping[str, str]


class Network(pulumi.ComponentResource):
    """The network of one stack; in an existing VPC only the subnet and, unless it is named, the security group.

    Nodes depend on the whole component: when they start, they need the rules of the group and the routes to services.
    """

    vpc_id: pulumi.Output[str]
    subnet_id: pulumi.Output[str]
    group_id: pulumi.Output[str]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("trainyard:aws-dl1:Network", name, None, opts)
        self._args = args
        self._inside = pulumi.ResourceOptions(parent=self)
        self.vpc_id = pulumi.Output.from_input(args.plan.vpc) if args.plan.vpc else self._vpc()
        self.subnet_id = self._subnet("subnet", args.plan.subnet_cidr, "nodes")
        to_services = self._ways_out() if args.plan.vpc is None else self._routes_of_owner()
        self.group_id = pulumi.Output.from_input(args.plan.security_group)
        if args.plan.make_security_group:
            self.group_id = nodes_group(args.plan, self.vpc_id, args.prefix, args.tags, to_services, self._inside)
        self.register_outputs({"vpc_id": self.vpc_id, "subnet_id": self.subnet_id, "group_id": self.group_id})

    def _tags(self, what: str) -> dict[str, str]:
        return resource_tags(self._args.tags, f"{self._args.prefix}-{what}")

    def _vpc(self) -> pulumi.Output[str]:
        # Services' names resolve to endpoints only in a VPC with DNS.
        return aws.ec2.Vpc(
            "vpc",
            cidr_block=self._args.plan.cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=self._tags("network"),
            opts=self._inside,
        ).id

    def _subnet(self, name: str, cidr: str, what: str) -> pulumi.Output[str]:
        return aws.ec2.Subnet(
            name,
            vpc_id=self.vpc_id,
            cidr_block=cidr,
            availability_zone=self._args.zone,
            map_public_ip_on_launch=False,
            tags=self._tags(what),
            # A subnet in another zone has the same addresses, and no two subnets can have those.
            opts=self._replaced_by(),
        ).id

    def _replaced_by(self, *properties: str) -> pulumi.ResourceOptions:
        """Options of resources that are deleted before they are replaced. `properties`: further inputs whose change
        replaces them.

        AWS does not delete a subnet that contains something. So its content is replaced with it, and deleted first.
        """
        again = pulumi.ResourceOptions(delete_before_replace=True, replace_on_changes=list(properties))
        return pulumi.ResourceOptions.merge(self._inside, again)

    def _routes_of_owner(self) -> list[Peer]:
        if table := self._args.plan.route_table:
            self._associate("routes", self.subnet_id, pulumi.Output.from_input(table))
        return [Peer("services", "services of AWS, where the routes of the VPC lead", HTTPS, cidr=ANYWHERE)]

    def _ways_out(self) -> list[Peer]:
        """Makes routes and endpoints in a VPC of the stack, and returns the peers that nodes reach by them."""
        plan = self._args.plan
        routes = aws.ec2.RouteTable("routes", vpc_id=self.vpc_id, tags=self._tags("nodes"), opts=self._inside).id
        self._associate("routes", self.subnet_id, routes)
        peers = [self._store(routes)]
        if plan.endpoints:
            peers.append(self._endpoints())
        if plan.nat and plan.gateway_cidr:
            self._route("nat", routes, nat_gateway_id=self._nat(plan.gateway_cidr))
        elif plan.public:
            self._route("internet", routes, gateway_id=self._internet())
        return peers

    def _store(self, routes: pulumi.Output[str]) -> Peer:
        gateway = aws.ec2.VpcEndpoint(
            "s3",
            vpc_id=self.vpc_id,
            service_name=f"com.amazonaws.{self._args.region}.s3",
            vpc_endpoint_type="Gateway",
            policy=self._args.policies.get("s3"),
            route_table_ids=[routes],
            tags=self._tags("s3"),
            opts=self._inside,
        )
        return Peer("s3", "the bucket, through its gateway endpoint", HTTPS, prefix_list=gateway.prefix_list_id)

    def _endpoints(self) -> Peer:
        """One endpoint in the subnet for each service. They have a security group of their own, without EFA's
        traffic."""
        args = self._args
        group = endpoint_group(self.vpc_id, args.plan.subnet_cidr, args.prefix, args.tags, self._inside)
        for service in args.plan.endpoints:
            aws.ec2.VpcEndpoint(
                service,
                vpc_id=self.vpc_id,
                service_name=f"com.amazonaws.{args.region}.{service}",
                vpc_endpoint_type="Interface",
                policy=args.policies.get(service),
                subnet_ids=[self.subnet_id],
                security_group_ids=[group],
                private_dns_enabled=True,
                tags=self._tags(service),
                opts=self._replaced_by("subnetIds", "securityGroupIds"),
            )
        return Peer("services", "services of AWS, through their endpoints in the subnet", HTTPS, group=group)

    def _nat(self, cidr: str) -> pulumi.Output[str]:
        """The NAT gateway is in a separate subnet, the only one with a route to the internet gateway."""
        public = self._subnet("gateway-subnet", cidr, "gateway")
        routes = aws.ec2.RouteTable(
            "gateway-routes", vpc_id=self.vpc_id, tags=self._tags("gateway"), opts=self._inside
        ).id
        self._associate("gateway-routes", public, routes)
        internet = self._route("gateway-internet", routes, gateway_id=self._internet())
        tags = {**self._tags("nat"), PUBLIC_ADDRESS: "nat"}
        address = aws.ec2.Eip("nat", domain="vpc", tags=tags, opts=self._inside)
        return aws.ec2.NatGateway(
            "nat",
            subnet_id=public,
            allocation_id=address.id,
            tags=self._tags("nat"),
            opts=pulumi.ResourceOptions.merge(self._inside, pulumi.ResourceOptions(depends_on=[internet])),
        ).id

    def _internet(self) -> pulumi.Output[str]:
        # AWS does not detach a gateway from a VPC with public addresses, so each VPC gets a new one.
        again = pulumi.ResourceOptions(replace_on_changes=["vpcId"])
        return aws.ec2.InternetGateway(
            "internet",
            vpc_id=self.vpc_id,
            tags=self._tags("internet"),
            opts=pulumi.ResourceOptions.merge(self._inside, again),
        ).id

    def _route(self, name: str, table: pulumi.Output[str], **gateway: pulumi.Output[str]) -> pulumi.Resource:
        return aws.ec2.Route(name, route_table_id=table, destination_cidr_block=ANYWHERE, opts=self._inside, **gateway)

    def _associate(self, name: str, subnet: pulumi.Output[str], table: pulumi.Output[str]) -> None:
        aws.ec2.RouteTableAssociation(name, subnet_id=subnet, route_table_id=table, opts=self._inside)
