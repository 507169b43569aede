# SPDX-License-Identifier: Apache-2.0
"""Checks of the network: what exists already, what is let in, and how nodes get out."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from components.aws.stack import AwsDl1Stack, gateway_cidr, rule
from schemas.checks.image_checks import OURS, image_path, images_of
from schemas.checks.network_checks import is_production_stack
from schemas.facts import Facts
from schemas.findings import Wrong, at
from schemas.job_on_platform import JobOnPlatform

SMALLEST_DEFAULT = 24
_ECR = re.compile(r"\d{12}\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com")
# What EC2 takes as the description of a rule.
_DESCRIPTION = re.compile(r"[A-Za-z0-9 ._\-:/()#,@\[\]+=&;{}!$*]{1,255}")


@rule("TY150", "an existing subnet without its security group")
def existing_subnet(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    if network.subnet is not None and network.security_group is None:
        message = "EFA needs a security group that allows all traffic within itself, but none is named"
        yield Wrong(at("network", "subnet"), message, "add `securityGroup`, one with both rules")
    if network.vpc is not None and network.subnet is None and network.subnet_cidr is None:
        message = "a subnet is made in the existing VPC, but its addresses are missing"
        yield Wrong(at("network", "vpc"), message, "add `subnetCidr`, a free part of the VPC's addresses")


@rule("TY151", "a part of a network that no network is named for")
def parts_without_network(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    if network.route_table is not None and network.vpc is None and network.subnet is None:
        message = "a route table exists in a VPC, but no `vpc` is named"
        yield Wrong(at("network", "routeTable"), message, "add `vpc`, or remove it: a new VPC gets its own routes")
    if network.security_group is not None and network.vpc is None and network.subnet is None:
        message = "a security group exists in a VPC, but no `vpc` or `subnet` is named"
        yield Wrong(at("network", "securityGroup"), message, "add `vpc`, or remove it: a new VPC gets its own group")
    if network.nat and network.vpc is not None:
        message = "no NAT gateway is made in an existing VPC: its owner decides on its ways out"
        yield Wrong(at("network", "nat"), message, "remove it, and name a `routeTable` that leads to one")


@rule("TY152", "an availability zone of another region")
def zone_of_other_region(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    zone = stack.network.zone
    if zone is not None and not re.fullmatch(re.escape(stack.region) + "[a-z]", zone):
        message = f"`{zone[:80]}` is not an availability zone of {stack.region}"
        yield Wrong(at("network", "zone"), message, f"use one such as `{stack.region}a`, or remove it")


@rule("TY153", "addresses or a reason that a rule of AWS cannot have")
def invalid_ingress(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for index, item in enumerate(stack.network.ingress):
        place = at("network", "ingress", index)
        block = _ipv4_block(item.cidr)
        if block is None or str(block) != item.cidr:
            remedy = f"write `{block}`" if block else "write it as 203.0.113.0/24"
            yield Wrong((*place, "cidr"), f"`{item.cidr[:80]}` is not a valid IPv4 block", remedy)
        if item.ports.first > item.ports.last or item.ports.last > 65535:
            yield Wrong((*place, "ports"), f"{item.ports} is not a range of ports", "write it as 6006-6010")
        if not _DESCRIPTION.fullmatch(item.why):
            message = "the description of a rule has up to 255 letters, digits, spaces and ._-:/()#,@[]+=&;{}!$*"
            yield Wrong((*place, "why"), message, "shorten it, and use only these characters")


@rule("TY154", "everybody is let in", severity="warning")
def open_to_all(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for index, item in enumerate(stack.network.ingress):
        block = _ipv4_block(item.cidr)
        if block is not None and block.prefixlen < 8:
            also = f" of `{stack.environment}`" if is_production_stack(stack) else ""
            message = f"{item.cidr} lets the internet connect to ports {item.ports} of the nodes{also}"
            yield Wrong(at("network", "ingress", index, "cidr"), message, "name the addresses of those who connect")


@rule("TY155", "a rule for an existing security group")
def ingress_of_existing(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    if stack.network.ingress and stack.network.security_group is not None:
        message = "`ingress` has no effect beside `securityGroup`: the rules of an existing group stay as they are"
        yield Wrong(at("network", "ingress"), message, "remove it, and ask the owner of the group for the rule")


@rule("TY156", "an image that the nodes cannot reach")
def unreachable_image(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    if not stack.makes("network") or network.vpc is not None or network.nat:
        return
    for image in images_of(stack):
        # Only the first node has an elastic address.
        if stack.jobs[image.job].cluster.public_address == "automatic":
            continue
        host = _ECR.fullmatch(image.host)
        if not image.text.startswith(OURS) and not (host and host["region"] == stack.region):
            named = image.host or "Docker Hub"
            message = f"the nodes cannot pull from {named}: without NAT they reach only the ECR of {stack.region}"
            remedy = "push the image to `${registry}`, or set `nat: true` under `trainyard:network`"
            yield Wrong(image_path(image), message, remedy)


@rule("TY157", "two ways out of one subnet")
def public_and_nat(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.cluster.public_address != "none" and stack.network.nat and stack.makes("network"):
            message = "a public address needs a subnet whose way out is an internet gateway; with `nat` it is NAT"
            remedy = "remove `nat` or the address; people reach nodes through AWS Systems Manager without one"
            yield Wrong(at("jobs", name, "cluster", "publicAddress"), message, remedy)


@rule("TY160", "no room for the NAT gateway")
def no_room_for_gateway(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    if not network.nat or network.inside is not None or not stack.makes("network"):
        return
    whole = _ipv4_block(network.cidr)
    # Without addresses of its own the nodes' subnet is the first /24 of the network, or all of a smaller one.
    nodes = network.subnet_cidr or (network.cidr if whole and whole.prefixlen >= SMALLEST_DEFAULT else None)
    if whole and nodes and _ipv4_block(nodes) and gateway_cidr(network.cidr, nodes) is None:
        message = f"the NAT gateway lies in a subnet of its own, but {nodes} takes all of {network.cidr}"
        yield Wrong(at("network", "nat"), message, "use a larger `cidr`, or a smaller `subnetCidr`")


@rule("TY158", "a public address that nobody can connect to", severity="warning")
def useless_address(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    if stack.network.ingress or stack.network.security_group is not None or not stack.makes("network"):
        return
    for name, job in stack.jobs.items():
        if job.cluster.public_address != "none":
            message = "the nodes get a public address, but nothing is let in from outside"
            remedy = "add `ingress` under `trainyard:network`, or remove the address"
            yield Wrong(at("jobs", name, "cluster", "publicAddress"), message, remedy)


@rule("TY159", "something else is let in to a port of training", severity="warning")
def ingress_to_training(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    for index, item in enumerate(stack.network.ingress):
        for name, job in stack.jobs.items():
            row = facts.framework(job)
            for port, inside in JobOnPlatform.of(stack, job, row).numbered() if row else ():
                if inside.overlaps(item.ports):
                    message = f"{item.cidr} reaches the `{port.label}` ports {inside} of `{name}`, which have no login"
                    yield Wrong(at("network", "ingress", index, "ports"), message, "let in what people need only")


def _ipv4_block(text: str) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        return None
