# SPDX-License-Identifier: Apache-2.0
"""The one picture of a review, as values: roles in their subnet, and who may reach what. Drawn by each form itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.plan.model import INTERNET, SERVICES, SUBNET
from components.platform.review import Snapshot
from trainyard.review.model import Edge, Picture

_EVERY_NODE = "every node"
_WORDS = {SUBNET: _EVERY_NODE, SERVICES: "the platform's services", INTERNET: "the internet"}
_PEOPLE = {"users": "people", "runs": "runs", "service": "the platform", "bucket-service": "the bucket's service"}
# What a grant is about -> where the picture shows it.
_PLACES = {
    "objects": "bucket", "buckets": "bucket", "images": "registry", "repositories": "registry", "logs": "logs",
    "secrets": "secrets", "keys": "secrets",
}  # fmt: skip


def picture(side: Snapshot) -> Picture:
    plan = side.plan
    if not plan:
        return Picture()
    roles = tuple(
        f"{name}/{role['name']} x {role['replicas']}"
        for name, job in (plan.get("jobs") or {}).items()
        for role in job.get("roles") or ()
    )
    names = {text.partition(" x ")[0]: text for text in roles}
    edges = dict.fromkeys([*_port_edges(plan, names), *_grant_edges(plan)])
    ends = {end for edge in edges for end in (edge.source, edge.target)}
    people = tuple(word for word in _PEOPLE.values() if word in ends)
    if _EVERY_NODE in ends:
        roles = (*roles, _EVERY_NODE)
    places = tuple(sorted(ends - {*people, *roles}))
    return Picture(_subnet(plan), roles, people, places, tuple(edges))


def _subnet(plan: Mapping[str, Any]) -> str:
    network = plan.get("network") or {}
    if network.get("create"):
        return f"subnet {network.get('subnetCidr')}"
    return f"subnet {network['subnet']}" if network.get("subnet") else "nodes"


def _port_edges(plan: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[Edge]:
    grouped: dict[tuple[str, str], list[str]] = {}
    for rule in (plan.get("network") or {}).get("rules") or ():
        source, target = (_WORDS.get(rule[end], names.get(rule[end], rule[end])) for end in ("source", "target"))
        ports = "all ports" if rule["ports"] is None else str(rule["ports"])
        grouped.setdefault((source, target), []).append(f"{rule['protocol'].upper()} {ports}")
    for (source, target), how in grouped.items():
        yield Edge(source, target, ", ".join(dict.fromkeys(how)))


def _grant_edges(plan: Mapping[str, Any]) -> Iterator[Edge]:
    grouped: dict[tuple[str, str], list[str]] = {}
    named = {
        "bucket": (plan.get("bucket") or {}).get("name"),
        "registry": (plan.get("registry") or {}).get("repository"),
    }
    for grant in (plan.get("access") or {}).get("grants") or ():
        place = _PLACES.get(grant["what"])
        if place is None:
            continue
        target = grant["target"] or named.get(place) or ""
        shown = f"{place} {target}".strip() if place in named else place
        grouped.setdefault((_PEOPLE[grant["who"]], shown), []).append(grant["does"])
    for (who, target), does in grouped.items():
        yield Edge(who, target, ", ".join(dict.fromkeys(does)))
