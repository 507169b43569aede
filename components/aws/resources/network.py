# SPDX-License-Identifier: Apache-2.0
"""VPC, the nodes' subnet in a zone that offers the machines, and routes to AWS's services and the internet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pulumi
import pulumi_aws as aws

from catalog.reason_tags import OPEN_PORT, PUBLIC_ADDRESS
from components.aws.plan import AwsNetworkPlan
from components.aws.resources.context import AwsComponent, resource_tags
from components.plan.model import INTERNET
from schemas.model import PortRange

HTTPS = PortRange(443, 443)
EVERYTHING = "-1"
# The longest description of a rule in EC2, and the characters that it must not have.
LONGEST_DESCRIPTION = 255
_NOT_IN_DESCRIPTION = re.compile(r"[^A-Za-z0-9 ._:/()#,@\[\]+=&;{}!$*-]+")
ANYWHERE = "0.0.0.0/0"


class Peer(NamedTuple):
    """What nodes reach by HTTPS. `key`: the name of the rule. `target`: the rule's input with a block, a group or a
    prefix list."""

    key: str
    why: str
    target: Mapping[str, Any]


def _tcp_rule(ports: PortRange, **peer: Any) -> dict[str, Any]:
    return {"ip_protocol": "tcp", "from_port": ports.first, "to_port": ports.last, **peer}


def _reasons_by_internet_rule(plan: AwsNetworkPlan) -> dict[tuple[str, PortRange], list[str]]:
    why: dict[tuple[str, PortRange], list[str]] = {}
    for rule in plan.rules:
        if rule.target == INTERNET:
            reasons = why.setdefault((rule.protocol, rule.ports or PortRange(0, 65535)), [])
            reasons += [rule.why] if rule.why not in reasons else []
    return why


@dataclass(frozen=True)
class NetworkArgs:
    plan: AwsNetworkPlan
    region: str
    zone: str
    prefix: str
    tags: Mapping[str, str]
    # Policies of endpoints, by their services.
    policies: Mapping[str, str]


class Network(AwsComponent):
    """The network of one stack; in an existing VPC only the subnet and, unless it is named, the security group.

    Nodes depend on the whole component: when they start, they need the rules of the group and the routes to services.
    """

    vpc_id: pulumi.Output[str]
    subnet_id: pulumi.Output[str]
    group_id: pulumi.Output[str]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Network", name, args.tags, opts)
        self._args = args
        self.vpc_id = pulumi.Output.from_input(args.plan.vpc) if args.plan.vpc else self._vpc()
        self.subnet_id = self._subnet("subnet", args.plan.subnet_cidr, "nodes")
        to_services = self._ways_out() if args.plan.vpc is None else self._routes_of_owner()
        self.group_id = pulumi.Output.from_input(args.plan.security_group)
        if args.plan.make_security_group:
            self.group_id = self._nodes_group(to_services)
        self.register_outputs({"vpc_id": self.vpc_id, "subnet_id": self.subnet_id, "group_id": self.group_id})

    def _named(self, what: str) -> str:
        return f"{self._args.prefix}-{what}"

    def _nodes_group(self, to_services: Iterable[Peer]) -> pulumi.Output[str]:
        """The security group of the nodes: all traffic from and to itself, what the stack file lets in, and access to
        services."""
        group, plan = self._group("nodes", "Nodes of distributed training"), self._args.plan
        # 0.0.0.0/0 does not cover EFA's traffic: only a rule that names the group itself does, in each direction.
        itself = {"ip_protocol": EVERYTHING, "referenced_security_group_id": group}
        ingress, egress = aws.vpc.SecurityGroupIngressRule, aws.vpc.SecurityGroupEgressRule
        self._rule(ingress, "nodes-from-nodes", group, itself, "everything between the nodes, as EFA needs it")
        self._rule(egress, "nodes-to-nodes", group, itself, "everything between the nodes, as EFA needs it")
        for item in plan.ingress:
            source = _tcp_rule(item.ports, cidr_ipv4=item.cidr)
            self._rule(ingress, f"from-{item.cidr}-{item.ports}", group, source, item.why, opened="chosen")
        for peer in to_services:
            self._rule(egress, f"to-{peer.key}", group, _tcp_rule(HTTPS, **peer.target), peer.why)
        for (protocol, ports), why in _reasons_by_internet_rule(plan).items():
            target = {**_tcp_rule(ports, cidr_ipv4=ANYWHERE), "ip_protocol": protocol}
            # Rules of TCP had no protocol in their names at first, and a new name would be a new rule.
            name = f"{ports}" if protocol == "tcp" else f"{protocol}-{ports}"
            self._rule(egress, f"to-internet-{name}", group, target, "; ".join(why))
        return group

    def _group(self, key: str, why: str) -> pulumi.Output[str]:
        # Two groups that name each other could not be deleted otherwise.
        inputs = {"name": self._named(key), "description": why, "revoke_rules_on_delete": True}
        return self._make(aws.ec2.SecurityGroup, key, None, self._named(key), vpc_id=self.vpc_id, **inputs).id

    def _rule(
        self, made: Any, name: str, group: pulumi.Output[str], rule: Mapping[str, Any], why: str, opened: str = ""
    ) -> None:
        """`opened`: the tag that says why a port is open to others than the nodes."""
        described = _NOT_IN_DESCRIPTION.sub(" ", why)[:LONGEST_DESCRIPTION]
        tags = {**self._tags, **({OPEN_PORT: opened} if opened else {})}
        self._make(made, name, security_group_id=group, description=described, tags=tags, **rule)

    def _vpc(self) -> pulumi.Output[str]:
        # Services' names resolve to endpoints only in a VPC with DNS.
        inputs = {"cidr_block": self._args.plan.cidr, "enable_dns_support": True, "enable_dns_hostnames": True}
        return self._make(aws.ec2.Vpc, "vpc", None, self._named("network"), **inputs).id

    def _subnet(self, name: str, cidr: str, what: str) -> pulumi.Output[str]:
        place = {"cidr_block": cidr, "availability_zone": self._args.zone, "map_public_ip_on_launch": False}
        # A subnet in another zone has the same addresses, and no two subnets can have those.
        again, called = self._replaced_by(), self._named(what)
        return self._make(aws.ec2.Subnet, name, again, called, vpc_id=self.vpc_id, **place).id

    def _replaced_by(self, *properties: str) -> pulumi.ResourceOptions:
        """Options of resources that are deleted before they are replaced. `properties`: further inputs whose change
        replaces them.

        AWS does not delete a subnet that contains something. So its content is replaced with it, and deleted first.
        """
        changes = list(properties)
        return pulumi.ResourceOptions(parent=self, delete_before_replace=True, replace_on_changes=changes)

    def _routes_of_owner(self) -> list[Peer]:
        if table := self._args.plan.route_table:
            self._associate("routes", self.subnet_id, pulumi.Output.from_input(table))
        return [Peer("services", "services of AWS, where the routes of the VPC lead", {"cidr_ipv4": ANYWHERE})]

    def _ways_out(self) -> list[Peer]:
        """Makes routes and endpoints in a VPC of the stack, and returns the peers that nodes reach by them."""
        plan = self._args.plan
        routes = self._make(aws.ec2.RouteTable, "routes", None, self._named("nodes"), vpc_id=self.vpc_id).id
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
        gateway = self._endpoint("s3", self._inside, vpc_endpoint_type="Gateway", route_table_ids=[routes])
        return Peer("s3", "the bucket, through its gateway endpoint", {"prefix_list_id": gateway.prefix_list_id})

    def _endpoint(self, service: str, opts: pulumi.ResourceOptions, **inputs: Any) -> Any:
        name, policy = f"com.amazonaws.{self._args.region}.{service}", self._args.policies.get(service)
        named = {"vpc_id": self.vpc_id, "service_name": name, "policy": policy}
        return self._make(aws.ec2.VpcEndpoint, service, opts, self._named(service), **named, **inputs)

    def _endpoints(self) -> Peer:
        """One endpoint in the subnet for each service. They have a security group of their own, without EFA's traffic:
        HTTPS from the nodes' subnet, and nothing else."""
        group = self._group("endpoints", "Endpoints of the services of AWS")
        nodes = _tcp_rule(HTTPS, cidr_ipv4=self._args.plan.subnet_cidr)
        why, ingress = "nodes reach the services of AWS", aws.vpc.SecurityGroupIngressRule
        self._rule(ingress, "endpoints-from-nodes", group, nodes, why, opened="endpoints")
        for service in self._args.plan.endpoints:
            placed = {"subnet_ids": [self.subnet_id], "security_group_ids": [group], "private_dns_enabled": True}
            again = self._replaced_by("subnetIds", "securityGroupIds")
            self._endpoint(service, again, vpc_endpoint_type="Interface", **placed)
        reached = {"referenced_security_group_id": group}
        return Peer("services", "services of AWS, through their endpoints in the subnet", reached)

    def _nat(self, cidr: str) -> pulumi.Output[str]:
        """The NAT gateway is in a separate subnet, the only one with a route to the internet gateway."""
        public = self._subnet("gateway-subnet", cidr, "gateway")
        named = self._named("gateway")
        routes = self._make(aws.ec2.RouteTable, "gateway-routes", None, named, vpc_id=self.vpc_id).id
        self._associate("gateway-routes", public, routes)
        internet = self._route("gateway-internet", routes, gateway_id=self._internet())
        named = self._named("nat")
        tags = {**resource_tags(self._tags, named), PUBLIC_ADDRESS: "nat"}
        address = self._make(aws.ec2.Eip, "nat", domain="vpc", tags=tags).id
        after = pulumi.ResourceOptions(parent=self, depends_on=[internet])
        return self._make(aws.ec2.NatGateway, "nat", after, named, subnet_id=public, allocation_id=address).id

    def _internet(self) -> pulumi.Output[str]:
        # AWS does not detach a gateway from a VPC with public addresses, so each VPC gets a new one.
        again = pulumi.ResourceOptions(parent=self, replace_on_changes=["vpcId"])
        named = self._named("internet")
        return self._make(aws.ec2.InternetGateway, "internet", again, named, vpc_id=self.vpc_id).id

    def _route(self, name: str, table: pulumi.Output[str], **gateway: pulumi.Output[str]) -> pulumi.Resource:
        return aws.ec2.Route(name, route_table_id=table, destination_cidr_block=ANYWHERE, opts=self._inside, **gateway)

    def _associate(self, name: str, subnet: pulumi.Output[str], table: pulumi.Output[str]) -> None:
        aws.ec2.RouteTableAssociation(name, subnet_id=subnet, route_table_id=table, opts=self._inside)
