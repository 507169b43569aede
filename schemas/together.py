# SPDX-License-Identifier: Apache-2.0
"""Checks of several stacks together: do they make the same things, share addresses, or use what is not there?"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from schemas.checks.registry import at
from schemas.findings import Finding
from schemas.findings import Path as FindingPath
from schemas.judge import OF_SEVERAL, Judged
from schemas.model import Stack
from schemas.neighbours import names_in, project_of
from schemas.used import Beside, check_uses

_Subnets = dict[str, list[tuple[ipaddress.IPv4Network, Judged]]]


@dataclass(frozen=True, slots=True)
class _Made:
    """A thing that can exist only once: `where` it would be, and what it is."""

    where: tuple[str | None, ...]
    what: str
    path: FindingPath
    remedy: str


def check_together(judged: Sequence[Judged], neighbours: Sequence[Judged] = ()) -> list[Judged]:
    """Adds the findings that need all stacks. Neighbours are looked at, but get no findings of their own."""
    first: dict[_Made, Judged] = {}
    subnets: _Subnets = {}
    folders = _folders((*neighbours, *judged))
    for one in neighbours:
        list(_clashes(one, first, subnets))
    checked = []
    for one in judged:
        new = [*_clashes(one, first, subnets), *_uses(one, folders[one.folder])]
        findings = sorted((*one.findings, *new), key=lambda finding: (finding.line, finding.column, finding.code))
        checked.append(replace(one, findings=tuple(findings)) if new else one)
    return checked


def _folders(judged: Sequence[Judged]) -> dict[Path, dict[str, Stack]]:
    folders: dict[Path, dict[str, Stack]] = defaultdict(dict)
    for one in judged:
        if one.stack:
            folders[one.folder][one.stack.name] = one.stack
    return folders


def _clashes(one: Judged, first: dict[_Made, Judged], subnets: _Subnets) -> Iterator[Finding]:
    if one.stack:
        # Several things clash for the same reason. One finding is enough.
        yield from {finding.path: finding for finding in reversed(list(_again(one, one.stack, first)))}.values()
        yield from _overlaps(one, one.stack, subnets)


def _uses(one: Judged, stacks: Mapping[str, Stack]) -> Iterator[Finding]:
    if one.stack and one.stack.uses:
        beside = Beside(stacks, project_of(one.folder), names_in(one.folder))
        for code, wrong in check_uses(one.stack, one.stack.uses, beside):
            yield _located(one, code, *wrong)


def _is_another(one: Judged, other: Judged) -> bool:
    """False for two versions of one stack's file, from two checkouts, and for a file that is named twice."""
    return one.stack is not None and other.stack is not None and one.stack.name != other.stack.name


def _again(one: Judged, stack: Stack, first: dict[_Made, Judged]) -> Iterator[Finding]:
    for made in _makes(stack):
        other = first.setdefault(replace(made, path=(), remedy=""), one)
        if _is_another(other, one):
            yield _located(
                one, "TY615", made.path, f"makes {made.what}, which {other.source.file} makes too", made.remedy
            )


def _makes(stack: Stack) -> Iterator[_Made]:
    for where, what, concern, other in stack.named_alike():
        remedy = other or f"choose another team or environment, or take {concern} from that stack (`uses`)"
        yield _Made(where, what, at("environment"), remedy)
    here = (stack.platform, stack.account, stack.region)
    if stack.makes("bucket"):
        name = stack.bucket_name
        remedy = f"choose another name, or `bucket: {{ existing: {name} }}` in one of them"
        yield _Made((stack.platform, *stack.bucket_scope), f"the bucket `{name}`", at("bucket", "name"), remedy)
    if stack.makes("registry"):
        name = stack.repository_name
        remedy = f"choose another name, or `registry: {{ existing: {name} }}` in one of them"
        yield _Made(here, f"the repository `{name}`", at("registry", "repository"), remedy)


def _overlaps(one: Judged, stack: Stack, subnets: _Subnets) -> Iterator[Finding]:
    network = stack.network
    if network.inside is None or network.subnet_cidr is None or not stack.makes("network"):
        return
    try:
        block = ipaddress.IPv4Network(network.subnet_cidr)
    except ValueError:
        return
    others = subnets.setdefault(network.inside, [])
    taken = next((row for row in others if block.overlaps(row[0]) and _is_another(row[1], one)), None)
    if taken:
        message = f"{block} overlaps {taken[0]}, which {taken[1].source.file} uses in the same network"
        remedy = "choose a free part of that network's addresses"
        yield _located(one, "TY114", at("network", "subnetCidr"), message, remedy)
    others.append((block, one))


def _located(one: Judged, code: str, path: FindingPath, message: str, remedy: str) -> Finding:
    line, column = one.source.position(path)
    return Finding(code, path, message, remedy, OF_SEVERAL[code][1], one.source.file, line, column)
