# SPDX-License-Identifier: Apache-2.0
"""Reads the current EC2 resources of a stack: its network, the rules of its security groups, and its machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from components.aws.client.live_values import record_aws_tags
from components.aws.iam.documents import declared_or_live
from components.aws.types import SERVED_TYPES
from components.aws.types.security_rules import rule_inputs
from components.platform.calls import Call
from components.platform.live import Reading
from components.platform.review import ReviewedResource
from components.s3 import Session, call_aws, list_aws_pages

VPC, SUBNET = "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"
ROUTE = "aws:ec2/route:Route"
ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
ROUTES, ENDPOINT = "aws:ec2/routeTable:RouteTable", "aws:ec2/vpcEndpoint:VpcEndpoint"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
INSTANCE, TEMPLATE = "aws:ec2/instance:Instance", "aws:ec2/launchTemplate:LaunchTemplate"
RULE_INPUTS = frozenset({
    "cidrIpv4", "cidrIpv6", "fromPort", "ipProtocol", "prefixListId", "referencedSecurityGroupId", "toPort",
})  # fmt: skip
READ_TYPES = frozenset({ROUTE, ASSOCIATION, ENDPOINT, INGRESS, EGRESS, INSTANCE})
JUDGED: Mapping[str, frozenset[str]] = {
    INGRESS: RULE_INPUTS,
    EGRESS: RULE_INPUTS,
    INSTANCE: frozenset({"vpcSecurityGroupIds"}),
}
# The target of a route. EC2 writes the names large.
_GATEWAYS = ("gatewayId", "natGatewayId", "transitGatewayId", "vpcPeeringConnectionId", "networkInterfaceId")
# The states of what is no longer there.
_DELETED = ("deleted", "deleting")
# By whether it wants tokens. Without them, one redirected request gets the credentials of a node.
_METADATA_SERVICES: Mapping[Any, str] = {"required": "IMDSv2 only", "optional": "IMDSv1 too"}
# A machine in one of these states never starts again.
_ENDED = frozenset({"terminated", "shutting-down"})
Row = Mapping[str, Any]


class Ec2Reader:
    def __init__(self, session: Session, call: Call, reading: Reading) -> None:
        self._session, self._call, self._reading = session, call, reading
        self._declared = reading.declared

    def read(self) -> None:
        self._places()
        self._endpoints()
        self._routes()
        self._rules()
        self._machines()

    def _rows(self, operation: str, key: str, filters: Mapping[str, Sequence[str]]) -> list[Row] | None:
        """The rows that EC2 lists for these filters. It omits missing ids without an error. None if listing is
        forbidden."""
        wanted = [{"Name": name, "Values": list(values)} for name, values in filters.items()]
        words = operation.removeprefix("describe_").replace("_", " ")
        client = self._session.client("ec2")

        def read() -> list[Row]:
            if not client.can_paginate(operation):
                return list(
                    call_aws(self._call, f"List the {words}", lambda: getattr(client, operation)(Filters=wanted))[key]
                )
            listing = list_aws_pages(self._call, f"List the {words}", client, operation, Filters=wanted)
            return [row for page in listing for row in page[key]]

        return self._reading.allowed(f"the {words}", read) if all(filters.values()) else []

    def _places(self) -> None:
        """Whether each resource is there, and its current values, as its row says."""
        from botocore import xform_name

        for token, row in SERVED_TYPES.items():
            if row.live is None or not row.live.filter:
                continue
            declared, by = self._declared.of(token), row.live.filter
            operation, listed = row.reads[0].operation, row.reads[0].at.partition("[")[0]
            ids = {str(one.inputs.get("name")) if by.endswith("-name") else one.id: one.id for one in declared}
            found = self._rows(xform_name(operation), listed, {by: list(ids)})
            if found is None:
                continue
            member = by.title().replace("-", "")
            there = {ids.get(live[member], ""): live for live in found if live.get("State") not in _DELETED}
            for resource, live in self._reading.present(declared, there):
                compared = row.live.compared.split()
                self._reading.record(resource, {name: live[name[0].upper() + name[1:]] for name in compared})
                record_aws_tags(self._reading, resource, "tags", live.get("Tags") or ())

    def _endpoints(self) -> None:
        """Endpoints of the stack's VPC. Data can leave through an endpoint as far as its policy allows."""
        declared = {one.id: one for one in self._declared.of(ENDPOINT)}
        places = sorted({str(one.inputs.get("vpcId")) for one in declared.values()})
        rows = self._rows("describe_vpc_endpoints", "VpcEndpoints", {"vpc-id": places})
        if rows is None:
            return
        there = {row["VpcEndpointId"]: row for row in rows if row.get("State") not in _DELETED}
        for one, row in self._reading.present(declared.values(), there):
            self._reading.record(one, _endpoint_values(row, one))
        for identity in sorted(there.keys() - declared.keys()):
            service = there[identity]["ServiceName"]
            self._reading.add(
                ENDPOINT, identity, {"serviceName": service}, f"endpoint {identity} of {service} in the stack's VPC"
            )

    def _routes(self) -> None:
        """The routes of the stack's route tables, and the table of each subnet."""
        tables = {one.id for one in self._declared.of(ROUTES)}
        rows = self._rows("describe_route_tables", "RouteTables", {"route-table-id": sorted(tables)}) or []
        declared = {
            (one.inputs.get("routeTableId"), one.inputs.get("destinationCidrBlock")): one
            for one in self._declared.of(ROUTE)
        }
        live = {}
        for table, route in ((row["RouteTableId"], route) for row in rows for route in row["Routes"]):
            gateway = str(route.get("GatewayId"))
            # Neither the local route of the VPC, nor routes that an endpoint added.
            if gateway != "local" and not gateway.startswith("vpce-"):
                block = route.get("DestinationCidrBlock") or route.get("DestinationIpv6CidrBlock")
                live[table, block] = route
        for place, one in declared.items():
            if rows and place not in live:
                self._reading.record_missing(one)
        for (table, block), route in live.items():
            named = ((key, route.get(key[0].upper() + key[1:])) for key in _GATEWAYS)
            target = dict([(key, str(gateway)) for key, gateway in named if gateway][:1])
            known = declared.get((table, block))
            if known is not None:
                self._reading.record(known, {**dict.fromkeys(_GATEWAYS), **target})
            else:
                inputs = {"routeTableId": table, "destinationCidrBlock": block, **target}
                by = next(iter(target.values()), "nothing that is there")
                self._reading.add(ROUTE, f"{table}_{block}", inputs, f"route to {block} by {by} in {table}")
        there = {
            one["SubnetId"]: row["RouteTableId"] for row in rows for one in row["Associations"] if "SubnetId" in one
        }
        for one in self._declared.of(ASSOCIATION):
            if rows and one.inputs.get("routeTableId") in tables:
                table = there.get(str(one.inputs.get("subnetId")))
                self._reading.record(one, {"routeTableId": table or "the main one"})

    def _rules(self) -> None:
        """Every rule of the stack's groups, including rules that others added."""
        groups = [one.id for one in self._declared.of(GROUP)]
        rows = self._rules_of(groups)
        if rows is None:
            return
        declared = {one.id: one for one in self._declared.of(INGRESS, EGRESS)}
        there = {row["SecurityGroupRuleId"]: row for row in rows}
        for identity, one in declared.items():
            if identity in there:
                live = rule_inputs(there[identity])
                self._reading.record(
                    one, {key: live.get(key) for key in RULE_INPUTS if live.get(key) != one.inputs.get(key)}
                )
            elif one.inputs.get("securityGroupId") in groups:
                self._reading.record_missing(one)
        for identity, row in there.items():
            if identity not in declared:
                self._add_rule(row)

    def _machines(self) -> None:
        rows = self._rows("describe_instances", "Reservations", {"tag:stack": [self._declared.stack]})
        if rows is None:
            return
        living = [row for group in rows for row in group["Instances"] if row["State"]["Name"] not in _ENDED]
        there = {row["InstanceId"]: row for row in living}
        templates = {one.id: one for one in self._declared.of(TEMPLATE)}
        declared = self._declared.of(INSTANCE)
        own_groups = {group.id for group in self._declared.of(GROUP)}
        foreign: dict[str, str] = {}
        for one, row in self._reading.present(declared, there):
            template = templates.get(str((one.inputs.get("launchTemplate") or {}).get("id")))
            expected = _template_values(template) if template else {}
            live = {key: value for key, value in _machine_values(row).items() if expected.get(key) is not None}
            further = set(live.get("securityGroups", ())) - {*expected.get("securityGroups", ()), *own_groups}
            if further:
                # So its rules count as those of the machine.
                live["vpcSecurityGroupIds"] = live["securityGroups"]
                foreign |= dict.fromkeys(further, one.name)
            self._reading.record(one, live, {key: value for key, value in expected.items() if value is not None})
            record_aws_tags(self._reading, one, "tags", row.get("Tags") or ())
        self._foreign_rules(foreign)
        for identity in (one for one in there if one not in {machine.id for machine in declared}):
            kind = there[identity]["InstanceType"]
            words = f"machine {identity} ({kind}), which has the stack's tag"
            self._reading.add(INSTANCE, identity, {"instanceType": kind}, words)

    def _foreign_rules(self, groups: Mapping[str, str]) -> None:
        """The rules of others' groups, by the machine that is in the group."""
        for rule in self._rules_of(sorted(groups)) or ():
            self._add_rule(rule, f", in which {groups[rule['GroupId']]} is")

    def _rules_of(self, groups: Sequence[str]) -> list[Row] | None:
        return self._rows("describe_security_group_rules", "SecurityGroupRules", {"group-id": groups})

    def _add_rule(self, rule: Row, inside: str = "") -> None:
        """Adds a rule that the stack does not declare. `inside`: who is in its group, in words."""
        inputs, identity, is_egress = rule_inputs(rule), rule["SecurityGroupRuleId"], rule["IsEgress"]
        words = f"rule {identity} of the security group {rule['GroupId']}{inside}: {rule_words(is_egress, inputs)}"
        self._reading.add(EGRESS if is_egress else INGRESS, identity, inputs, words)


def _endpoint_values(row: Row, declared: ReviewedResource) -> Mapping[str, Any]:
    """The endpoint's groups, and its policy if the stack declares one."""
    given = declared.inputs
    values: dict[str, Any] = {}
    if given.get("policy"):
        values["policy"] = declared_or_live(given["policy"], row.get("PolicyDocument"))
    if given.get("securityGroupIds"):
        groups = sorted(one["GroupId"] for one in row.get("Groups") or ())
        values["securityGroupIds"] = declared_or_live(given["securityGroupIds"], groups)
    return values


def rule_words(egress: bool, rule: Mapping[str, Any]) -> str:
    peers = ("cidrIpv4", "cidrIpv6", "referencedSecurityGroupId", "prefixListId")
    peer = next((str(rule[key]) for key in peers if rule.get(key)), "nobody")
    first, last = rule.get("fromPort"), rule.get("toPort")
    ports = "every port" if first is None else f"port {first}" if first == last else f"ports {first} to {last}"
    protocol = "every protocol" if rule["ipProtocol"] == "-1" else f"{rule['ipProtocol']}, {ports}"
    return f"{protocol} {'to' if egress else 'from'} {peer}"


def _template_values(template: ReviewedResource) -> dict[str, Any]:
    """The properties that a machine has from its launch template."""
    interfaces = template.inputs.get("networkInterfaces") or ()
    profile = (template.inputs.get("iamInstanceProfile") or {}).get("name")
    return {
        "instanceType": template.inputs.get("instanceType"),
        "iamInstanceProfile": profile or "none",
        "securityGroups": sorted({group for one in interfaces for group in one.get("securityGroups") or ()}),
        "subnetId": next((one.get("subnetId") for one in interfaces), None),
        "metadataService": _METADATA_SERVICES.get((template.inputs.get("metadataOptions") or {}).get("httpTokens")),
    }


def _machine_values(row: Row) -> dict[str, Any]:
    profile = str((row.get("IamInstanceProfile") or {}).get("Arn") or "none").rpartition("/")[2]
    groups = {group["GroupId"] for one in row.get("NetworkInterfaces") or () for group in one.get("Groups") or ()}
    groups |= {group["GroupId"] for group in row.get("SecurityGroups") or ()}
    return {
        "instanceType": row["InstanceType"],
        "iamInstanceProfile": profile,
        "securityGroups": sorted(groups),
        "subnetId": row.get("SubnetId"),
        "metadataService": _METADATA_SERVICES.get((row.get("MetadataOptions") or {}).get("HttpTokens")),
    }
