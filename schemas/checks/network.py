# SPDX-License-Identifier: Apache-2.0
"""Checks of addresses and of what is made, or already there, of the network."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from schemas.addresses import RESERVED_ADDRESSES, addresses_needed
from schemas.checks.registry import Wrong, at, rule
from schemas.cloning import inside_oci
from schemas.facts import Facts
from schemas.model import Network, Stack
from schemas.names import suggestion

LARGEST, SMALLEST = 16, 30
_PRIVATE = tuple(ipaddress.IPv4Network(block) for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
_REFUSED = tuple(
    ipaddress.IPv4Network(block) for block in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3")
)


def made(stack: Stack) -> bool:
    """Whether this stack makes a subnet."""
    return stack.network.subnet is None and not (stack.uses and "network" in stack.uses.take)


def _blocks(network: Network) -> Iterator[tuple[str, str]]:
    if network.vcn is None:
        yield "cidr", network.cidr
    if network.subnet_cidr is not None:
        yield "subnetCidr", network.subnet_cidr


def _parsed(text: str | None) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(text, strict=False) if text and "/" in text else None
    except ValueError:
        return None


@rule("TY101", "an address block is malformed")
def malformed(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for key, text in _blocks(stack.network):
        block = _parsed(text)
        if block is None:
            yield Wrong(at("network", key), f"`{text}` is no IPv4 block", "write it as 10.20.0.0/16")
        elif str(block) != text:
            yield Wrong(at("network", key), f"`{text}` is not the first address of its block", f"write `{block}`")


@rule("TY102", "an address block is larger or smaller than OCI takes", platform="oci")
def wrong_size(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for key, text in _blocks(stack.network):
        block = _parsed(text)
        if block and not LARGEST <= block.prefixlen <= SMALLEST:
            message = f"/{block.prefixlen} is outside what OCI takes, /{LARGEST} to /{SMALLEST}"
            yield Wrong(at("network", key), message, f"choose a prefix from /{LARGEST} to /{SMALLEST}")


@rule("TY103", "the subnet lies outside its network")
def outside(stack: Stack, _: Facts) -> Iterator[Wrong]:
    whole, part = _parsed(stack.network.cidr), _parsed(stack.network.subnet_cidr)
    if stack.network.vcn is None and whole and part and not part.subnet_of(whole):
        yield Wrong(at("network", "subnetCidr"), f"{part} is not inside {whole}", f"choose a part of {whole}")


@rule("TY104", "the subnet is too small for the nodes")
def too_small(stack: Stack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    key = "subnetCidr" if network.subnet_cidr else "cidr"
    block = _parsed(network.subnet_cidr or (network.cidr if network.vcn is None else None))
    if not made(stack) or block is None:
        return
    needed = addresses_needed(stack) + RESERVED_ADDRESSES
    if block.num_addresses < needed:
        prefix = 32 - (needed - 1).bit_length()
        message = (
            f"{block} has {block.num_addresses} addresses; the runs need {needed - RESERVED_ADDRESSES} "
            f"and OCI keeps {RESERVED_ADDRESSES}"
        )
        larger = f"use /{prefix} or larger, or " if prefix >= LARGEST else "use "
        yield Wrong(at("network", key), message, f"{larger}fewer nodes and runs")


@rule("TY105", "an address block is not private", severity="warning")
def public(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for key, text in _blocks(stack.network):
        block = _parsed(text)
        if block and not any(block.subnet_of(private) for private in _PRIVATE + _REFUSED):
            message = f"{block} is not in a private range: the addresses belong to somebody else"
            yield Wrong(at("network", key), message, "use a part of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16")


@rule("TY106", "an address block is one that no network can have")
def unusable(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for key, text in _blocks(stack.network):
        block = _parsed(text)
        refused = next((other for other in _REFUSED if block and block.overlaps(other)), None)
        if refused:
            yield Wrong(at("network", key), f"{block} overlaps {refused}, which is reserved", "use 10.20.0.0/16")


@rule("TY107", "an existing network and one to make are both described")
def existing_and_made(stack: Stack, _: Facts) -> Iterator[Wrong]:
    network, default = stack.network, Network()
    if network.subnet is not None:
        beside = {
            "cidr": network.cidr != default.cidr,
            "subnetCidr": network.subnet_cidr is not None,
            "mode": network.mode != default.mode,
            "frameworks": bool(network.frameworks),
            "nat": network.nat,
            "vcn": network.vcn is not None,
            "routeTable": network.route_table is not None,
        }
        for key in (key for key, said in beside.items() if said):
            message = f"`{key}` has no effect beside `subnet`: that network exists"
            yield Wrong(at("network", key), message, f"remove `{key}`, or remove `subnet` to have one made")
    elif network.vcn is not None and network.cidr != default.cidr:
        message = "`cidr` has no effect beside `vcn`: that network has its addresses"
        yield Wrong(at("network", "cidr"), message, "give the new subnet's addresses as `subnetCidr`")


@rule("TY108", "the internet is needed and not reachable")
def no_way_out(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if not made(stack) or stack.network.nat:
        return
    for name, job in stack.jobs.items():
        git = job.code.git if job.code else None
        if git and not inside_oci(git.url):
            message = "the nodes clone from the internet, and their private subnet has no way out"
            yield Wrong(at("jobs", name, "code", "git"), message, "set `nat: true` under `trainyard:network`")


@rule("TY109", "ports are to be opened for an unknown framework")
def unknown_framework(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for index, name in enumerate(stack.network.frameworks):
        if name not in facts.framework_names():
            remedy = suggestion(name, facts.framework_names())
            yield Wrong(at("network", "frameworks", index), f"`{name}` is no framework", remedy)


@rule("TY110", "an existing VCN needs to know the new subnet", platform="oci")
def vcn_without_subnet(stack: Stack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    if network.vcn is None or network.subnet is not None:
        return
    if network.subnet_cidr is None:
        message = "a subnet is made in the existing VCN, but its addresses are not said"
        yield Wrong(at("network", "vcn"), message, "add `subnetCidr`, a free part of the VCN's addresses")
    if network.route_table is None:
        message = "the new subnet would get the VCN's default route table, which often leads nowhere"
        yield Wrong(at("network", "vcn"), message, "add `routeTable`, one with a service gateway")


@rule("TY111", "a setting speaks of a network that is not there", severity="warning")
def without_effect(stack: Stack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    if network.route_table and not network.vcn and not network.subnet:
        yield Wrong(at("network", "routeTable"), "has no effect without `vcn`", "remove it, or name the VCN")
    if network.compartment and not (network.vcn or network.subnet):
        message = "has no effect: it says where an existing network lives"
        yield Wrong(at("network", "compartment"), message, "remove it, or name `vcn` or `subnet`")


@rule("TY112", "all TCP is open in a production environment", severity="warning")
def open_production(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.network.mode == "proof-of-concept" and is_production(stack):
        message = f"opens all TCP in the subnet of `{stack.environment}`"
        yield Wrong(at("network", "mode"), message, "use `least`; it opens what the jobs need")


@rule("TY113", "the documented ports do not carry this framework", severity="warning")
def undocumented_ports(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    if stack.network.mode != "documented" or not made(stack):
        return
    for name, job in stack.jobs.items():
        row = facts.framework(job)
        documented = [port for port in row.ports if port.documented] if row else []
        # What the documents do not name at all has what it needs; where they open every port, nothing is missing.
        if row is None or job.nodes < 2 or not documented or any(port.default == "all" for port in documented):
            continue
        for port in row.ports:
            if port.when and not job.options.get(port.when, row.options[port.when].default):
                continue
            if not port.documented and port.evidence == "measured" and job.ports.get(port.label) != "all":
                message = (
                    f"`{job.framework}` also needs its `{port.label}` ports, which Oracle's documents leave closed"
                )
                yield Wrong(
                    at("jobs", name, "framework"),
                    message,
                    "use the network mode `least`; with `documented` training hangs",
                )


def is_production(stack: Stack) -> bool:
    return any(word in ("prod", "production", "prd", "live") for word in stack.environment.split("-"))
