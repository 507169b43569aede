# SPDX-License-Identifier: Apache-2.0
"""The picture of a review: roles in their subnet, and who may reach what. First as values, then drawn as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any

from components.plan.model import INTERNET, SERVICES, SUBNET
from components.platform.review import Snapshot
from launcher.escaping import terminal
from trainyard.review.model import Edge, Picture

_EVERY_NODE = "every node"
_WORDS = {SUBNET: _EVERY_NODE, SERVICES: "the platform's services", INTERNET: "the internet"}
_PEOPLE = {"users": "people", "runs": "runs", "service": "the platform", "bucket-service": "the bucket's service"}
# The subject of a grant -> its place in the picture.
_PLACES = {
    "objects": "bucket", "buckets": "bucket", "images": "registry", "repositories": "registry", "logs": "logs",
    "secrets": "secrets", "keys": "secrets",
}  # fmt: skip
# In units of the drawing, which is as wide as the page allows.
_BOX, _GAP, _LINE, _TOP = 190, 18, 16, 40
_COLUMNS = (10, 265, 520)
_WIDTH = _COLUMNS[-1] + _BOX + 10
_LETTERS = 24


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


def svg(shown: Picture) -> str:
    """The picture as SVG; empty if there is nothing to draw. All text is escaped. The page's style sets the colours."""
    if not shown.edges:
        return ""
    places: dict[str, tuple[float, float, float]] = {}
    height = 0.0
    for column, names in zip(_COLUMNS, (shown.people, shown.roles, shown.places), strict=True):
        top = float(_TOP)
        for name in names:
            tall = float(_LINE * len(_lines(name)) + 14)
            places[name] = (float(column), top, tall)
            top += tall + _GAP
        height = max(height, top)
    label = "Who may reach what: " + "; ".join(f"{one.source} to {one.target}: {one.how}" for one in shown.edges)
    body = [
        f'<svg class="picture" viewBox="0 0 {_WIDTH} {height + 10:.0f}" role="img" aria-label="{_text(label)}">',
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<rect class="subnet" x="{_COLUMNS[1] - 12}" y="8" width="{_BOX + 24}" height="{height - 4:.0f}" rx="8"/>',
        f'<text class="title" x="{_COLUMNS[1]}" y="28">{_text(shown.subnet)}</text>',
        *_edges(shown.edges, places),
    ]
    for name, (left, top, tall) in places.items():
        body += _box(name, left, top, tall)
    return "\n".join([*body, "</svg>"])


def _edges(edges: Sequence[Edge], places: dict[str, tuple[float, float, float]]) -> Iterator[str]:
    for number, edge in enumerate(edges):
        (x, y, tall), (to_x, to_y, to_tall) = places[edge.source], places[edge.target]
        middle, to_middle = y + tall / 2, to_y + to_tall / 2
        title = f"<title>{_text(f'{edge.source} to {edge.target}: {edge.how}')}</title>"
        if x == to_x:
            bend = x - 8 - 3 * (number % 5)
            path = f"M{x} {middle:.0f}C{bend} {middle:.0f} {bend} {to_middle:.0f} {to_x} {to_middle + 6:.0f}"
        else:
            start, stop = (x + _BOX, to_x) if x < to_x else (x, to_x + _BOX)
            half = (start + stop) / 2
            path = f"M{start} {middle:.0f}C{half:.0f} {middle:.0f} {half:.0f} {to_middle:.0f} {stop} {to_middle:.0f}"
        yield f'<path class="edge" d="{path}" marker-end="url(#end)">{title}</path>'


def _box(name: str, left: float, top: float, tall: float) -> Iterator[str]:
    yield f'<rect class="box" x="{left}" y="{top:.0f}" width="{_BOX}" height="{tall:.0f}" rx="5"/>'
    for number, line in enumerate(_lines(name)):
        yield f'<text x="{left + 9}" y="{top + 20 + _LINE * number:.0f}">{_text(line)}</text>'


def _lines(name: str) -> list[str]:
    return wrap(terminal(name), _LETTERS, break_on_hyphens=False) or [""]


def _text(text: str) -> str:
    return escape(terminal(text), quote=True)
