# SPDX-License-Identifier: Apache-2.0
"""What several stacks must not do at once: make the same thing, or take the same addresses of one network."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from schemas.checks.access import made as makes_access
from schemas.checks.network import made as makes_subnet
from schemas.checks.registry import at
from schemas.findings import Finding, Path
from schemas.judge import OF_SEVERAL, Judged
from schemas.model import Stack


@dataclass(frozen=True, slots=True)
class _Made:
    """A thing that can be there once: `where` it would be, and what it is."""

    where: tuple[str | None, ...]
    what: str
    path: Path
    remedy: str


def together(judged: Sequence[Judged]) -> list[Judged]:
    """The same, with what is found only by looking at all of them."""
    first: dict[_Made, Judged] = {}
    subnets: dict[str, list[tuple[ipaddress.IPv4Network, Judged]]] = {}
    found = []
    for one in judged:
        new = [*_again(one, one.stack, first), *_overlaps(one, one.stack, subnets)] if one.stack else []
        findings = sorted((*one.findings, *new), key=lambda finding: (finding.line, finding.column, finding.code))
        found.append(replace(one, findings=tuple(findings)) if new else one)
    return found


def _is_another(one: Judged, other: Judged) -> bool:
    """Two versions of one stack's file, from two checkouts, are one stack; and so is a file named twice."""
    return one.stack is not None and other.stack is not None and one.stack.name != other.stack.name


def _again(one: Judged, stack: Stack, first: dict[_Made, Judged]) -> Iterator[Finding]:
    for made in _makes(stack):
        other = first.setdefault(replace(made, path=(), remedy=""), one)
        if _is_another(other, one):
            yield _located(one, "TY615", made.path, f"makes {made.what}, as {other.source.file} does", made.remedy)


def _makes(stack: Stack) -> Iterator[_Made]:
    tenancy = stack.tenancy or stack.compartment
    taken = stack.uses.take if stack.uses else ()
    names = f"{stack.team}-{stack.environment}"
    if makes_access(stack) and not stack.access.runs:
        remedy = "give it another team or environment, or take the access from that stack (`uses`)"
        yield _Made((tenancy, stack.access.domain), f"the group `{names}-runs`", at("environment"), remedy)
    if stack.bucket.existing is None and "bucket" not in taken:
        name = stack.bucket.name or f"{names}-training"
        remedy = f"choose another name, or `bucket: {{ existing: {name} }}` in one of them"
        yield _Made((tenancy, stack.region), f"the bucket `{name}`", at("bucket", "name"), remedy)
    if stack.registry.existing is None and "registry" not in taken:
        name = stack.registry.repository or f"{stack.team}/{stack.environment}/training"
        remedy = f"choose another name, or `registry: {{ existing: {name} }}` in one of them"
        yield _Made((tenancy, stack.region), f"the repository `{name}`", at("registry", "repository"), remedy)


def _overlaps(
    one: Judged, stack: Stack, subnets: dict[str, list[tuple[ipaddress.IPv4Network, Judged]]]
) -> Iterator[Finding]:
    network = stack.network
    if network.vcn is None or network.subnet_cidr is None or not makes_subnet(stack):
        return
    try:
        block = ipaddress.IPv4Network(network.subnet_cidr)
    except ValueError:
        return
    others = subnets.setdefault(network.vcn, [])
    taken = next((row for row in others if block.overlaps(row[0]) and _is_another(row[1], one)), None)
    if taken:
        message = f"{block} overlaps {taken[0]}, which {taken[1].source.file} takes in the same VCN"
        remedy = "choose a free part of the VCN's addresses"
        yield _located(one, "TY114", at("network", "subnetCidr"), message, remedy)
    others.append((block, one))


def _located(one: Judged, code: str, path: Path, message: str, remedy: str) -> Finding:
    line, column = one.source.position(path)
    return Finding(code, path, message, remedy, OF_SEVERAL[code][1], one.source.file, line, column)
