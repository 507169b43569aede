# SPDX-License-Identifier: Apache-2.0
"""Checks of the network: its addresses, and the parts that are made or exist already."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import fields

from catalog import production
from schemas.convert import camel_case, default_of
from schemas.each import addresses_needed
from schemas.facts import Facts
from schemas.findings import Wrong, at, rule
from schemas.job_code import git_host
from schemas.job_on_platform import JobOnPlatform
from schemas.model import Network, Stack
from schemas.name_suggestions import suggest_name

_PRIVATE = tuple(ipaddress.IPv4Network(block) for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
_REFUSED = tuple(
    ipaddress.IPv4Network(block) for block in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3")
)


def _address_blocks(network: Network) -> Iterator[tuple[str, str]]:
    if network.inside is None:
        yield "cidr", network.cidr
    if network.subnet_cidr is not None:
        yield "subnetCidr", network.subnet_cidr


def _parse_address_block(text: str | None) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(text, strict=False) if text and "/" in text else None
    except ValueError:
        return None


@rule("TY101", "an address block is malformed")
def malformed_block(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for key, text in _address_blocks(stack.network):
        block = _parse_address_block(text)
        if block is None:
            yield Wrong(at("network", key), f"`{text}` is not a valid IPv4 block", "write it as 10.20.0.0/16")
        elif str(block) != text:
            yield Wrong(
                at("network", key), f"`{text}` does not begin with the first address of its block", f"write `{block}`"
            )


@rule("TY102", "an address block is larger or smaller than the platform allows")
def wrong_block_size(stack: Stack, _: Facts) -> Iterator[Wrong]:
    largest, smallest = stack.network.prefixes
    for key, text in _address_blocks(stack.network):
        block = _parse_address_block(text)
        if block and not largest <= block.prefixlen <= smallest:
            message = f"/{block.prefixlen} is not allowed: {stack.platform} takes /{largest} to /{smallest}"
            yield Wrong(at("network", key), message, f"choose a prefix from /{largest} to /{smallest}")


@rule("TY103", "the subnet lies outside its network")
def subnet_outside_network(stack: Stack, _: Facts) -> Iterator[Wrong]:
    whole, part = _parse_address_block(stack.network.cidr), _parse_address_block(stack.network.subnet_cidr)
    if stack.network.inside is None and whole and part and not part.subnet_of(whole):
        yield Wrong(at("network", "subnetCidr"), f"{part} is not inside {whole}", f"choose a part of {whole}")


@rule("TY104", "the subnet is too small for the nodes")
def subnet_too_small(stack: Stack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    key = "subnetCidr" if network.subnet_cidr else "cidr"
    block = _parse_address_block(network.subnet_cidr or (network.cidr if network.inside is None else None))
    if not stack.makes("network") or block is None:
        return
    reserved = network.reserved_addresses
    needed = addresses_needed(stack) + reserved
    if block.num_addresses < needed:
        prefix = 32 - (needed - 1).bit_length()
        kept = f" and {stack.platform} keeps {reserved}" if reserved else ""
        message = f"{block} has {block.num_addresses} addresses; the runs need {needed - reserved}{kept}"
        larger = f"use /{prefix} or larger, or " if prefix >= network.prefixes[0] else "use "
        yield Wrong(at("network", key), message, f"{larger}fewer nodes and runs")


@rule("TY105", "an address block is not private", severity="warning")
def public_block(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for key, text in _address_blocks(stack.network):
        block = _parse_address_block(text)
        if block and not any(block.subnet_of(private) for private in _PRIVATE + _REFUSED):
            message = f"{block} is not a private range: these addresses belong to others"
            yield Wrong(at("network", key), message, "use a part of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16")


@rule("TY106", "an address block is reserved")
def reserved_block(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for key, text in _address_blocks(stack.network):
        block = _parse_address_block(text)
        refused = next((other for other in _REFUSED if block and block.overlaps(other)), None)
        if refused:
            yield Wrong(at("network", key), f"{block} overlaps {refused}, which is reserved", "use 10.20.0.0/16")


@rule("TY107", "an existing network and a new one are both described")
def existing_and_made(stack: Stack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    described = [column for column in fields(network) if getattr(network, column.name) != default_of(column)]
    if network.subnet is not None:
        for key in (camel_case(column.name) for column in described if column.name not in network.beside_subnet):
            message = f"`{key}` has no effect beside `subnet`: that network exists already"
            yield Wrong(at("network", key), message, f"remove `{key}`, or remove `subnet` to make a new one")
    elif network.inside is not None and network.cidr != Network().cidr:
        message = f"`cidr` has no effect beside `{network.inside_key}`: that network has its addresses already"
        yield Wrong(at("network", "cidr"), message, "give the new subnet's addresses as `subnetCidr`")


@rule("TY108", "the internet is needed but cannot be reached")
def no_way_out(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if not stack.makes("network") or stack.network.nat:
        return
    for name, job in stack.jobs.items():
        git = job.code.git if job.code else None
        if git and not stack.is_inside(git_host(git.url)):
            message = "the nodes clone from the internet, but their private subnet has no way out"
            yield Wrong(at("jobs", name, "code", "git"), message, "set `nat: true` under `trainyard:network`")


@rule("TY109", "ports are opened for an unknown framework")
def ports_of_unknown_framework(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for index, name in enumerate(stack.network.frameworks):
        if name not in facts.framework_names():
            remedy = suggest_name(name, facts.framework_names())
            yield Wrong(at("network", "frameworks", index), f"`{name}` is not a known framework", remedy)


@rule("TY112", "all TCP is open in a production environment", severity="warning")
def open_ports_in_production(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.network.mode == "proof-of-concept" and is_production_stack(stack):
        message = f"opens all TCP ports in the subnet of `{stack.environment}`"
        yield Wrong(at("network", "mode"), message, "use `least`; it opens what the jobs need")


@rule("TY113", "the documented ports are not enough for this framework", severity="warning")
def undocumented_ports(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    if stack.network.mode != "documented" or not stack.makes("network"):
        return
    for name, job in stack.jobs.items():
        framework = facts.framework(job)
        documented = [port for port in framework.ports if port.documented] if framework else []
        # A framework that the documents do not name gets all its ports. If they open every port, none is missing.
        if framework is None or job.nodes < 2 or not documented or any(port.default == "all" for port in documented):
            continue
        for port in framework.ports:
            if not JobOnPlatform.of(stack, job, framework).is_active(port):
                continue
            if not port.documented and port.evidence == "measured" and job.ports.get(port.label) != "all":
                message = f"`{job.framework}` also needs its `{port.label}` ports, which the documents leave closed"
                yield Wrong(
                    at("jobs", name, "framework"),
                    message,
                    "use the network mode `least`; with `documented`, training hangs",
                )


def is_production_stack(stack: Stack) -> bool:
    return production.is_production(stack.environment)
