# SPDX-License-Identifier: Apache-2.0
"""The picture of a review: roles in their subnet, and who may reach what. First as values, then drawn as SVG."""

from __future__ import annotations

from html import escape
from textwrap import wrap

from components.plan.model import INTERNET, SERVICES, SUBNET
from components.platform.review import Snapshot
from launcher.escaping import terminal_line
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


def build_picture(side: Snapshot) -> Picture:
    plan = side.plan
    if not plan:
        return Picture()
    roles = tuple(
        f"{name}/{role['name']} x {role['replicas']}"
        for name, job in (plan.get("jobs") or {}).items()
        for role in job.get("roles") or ()
    )
    titles = {title.partition(" x ")[0]: title for title in roles}
    # The edges: first by the port rules of the plan, then by its grants.
    labels: dict[tuple[str, str], list[str]] = {}
    for rule in (plan.get("network") or {}).get("rules") or ():
        source, target = (_WORDS.get(rule[end], titles.get(rule[end], rule[end])) for end in ("source", "target"))
        ports = "all ports" if rule["ports"] is None else str(rule["ports"])
        labels.setdefault((source, target), []).append(f"{rule['protocol'].upper()} {ports}")
    names = {
        "bucket": (plan.get("bucket") or {}).get("name"),
        "registry": (plan.get("registry") or {}).get("repository"),
    }
    for grant in (plan.get("access") or {}).get("grants") or ():
        place = _PLACES.get(grant["what"])
        if place is None:
            continue
        target = grant["target"] or names.get(place) or ""
        title = f"{place} {target}".strip() if place in names else place
        labels.setdefault((_PEOPLE[grant["who"]], title), []).append(grant["does"])
    edges = tuple(
        Edge(source, target, ", ".join(dict.fromkeys(of_edge))) for (source, target), of_edge in labels.items()
    )
    ends = {end for edge in edges for end in (edge.source, edge.target)}
    people = tuple(title for title in _PEOPLE.values() if title in ends)
    if _EVERY_NODE in ends:
        roles = (*roles, _EVERY_NODE)
    places = tuple(sorted(ends - {*people, *roles}))
    network = plan.get("network") or {}
    subnet = network.get("subnetCidr" if network.get("create") else "subnet")
    return Picture(f"subnet {subnet}" if subnet else "nodes", roles, people, places, edges)


def picture_svg(shown: Picture) -> str:
    """The picture as SVG; empty if there is nothing to draw. All text is escaped. The page's style sets the colours."""
    if not shown.edges:
        return ""
    boxes: dict[str, tuple[float, float, float]] = {}
    height = 0.0
    for column, names in zip(_COLUMNS, (shown.people, shown.roles, shown.places), strict=True):
        top = float(_TOP)
        for name in names:
            tall = float(_LINE * len(_wrap_name(name)) + 14)
            boxes[name] = (float(column), top, tall)
            top += tall + _GAP
        height = max(height, top)
    label = "Who may reach what: " + "; ".join(f"{edge.source} to {edge.target}: {edge.how}" for edge in shown.edges)
    body = [
        f'<svg class="picture" viewBox="0 0 {_WIDTH} {height + 10:.0f}" role="img" aria-label="{_svg_text(label)}">',
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<rect class="subnet" x="{_COLUMNS[1] - 12}" y="8" width="{_BOX + 24}" height="{height - 4:.0f}" rx="8"/>',
        f'<text class="title" x="{_COLUMNS[1]}" y="28">{_svg_text(shown.subnet)}</text>',
    ]
    for number, edge in enumerate(shown.edges):
        (x, y, tall), (to_x, to_y, to_tall) = boxes[edge.source], boxes[edge.target]
        middle, to_middle = y + tall / 2, to_y + to_tall / 2
        title = f"<title>{_svg_text(f'{edge.source} to {edge.target}: {edge.how}')}</title>"
        if x == to_x:
            bend = x - 8 - 3 * (number % 5)
            path = f"M{x} {middle:.0f}C{bend} {middle:.0f} {bend} {to_middle:.0f} {to_x} {to_middle + 6:.0f}"
        else:
            start, stop = (x + _BOX, to_x) if x < to_x else (x, to_x + _BOX)
            half = (start + stop) / 2
            path = f"M{start} {middle:.0f}C{half:.0f} {middle:.0f} {half:.0f} {to_middle:.0f} {stop} {to_middle:.0f}"
        body.append(f'<path class="edge" d="{path}" marker-end="url(#end)">{title}</path>')
    for name, (left, top, tall) in boxes.items():
        body.append(f'<rect class="box" x="{left}" y="{top:.0f}" width="{_BOX}" height="{tall:.0f}" rx="5"/>')
        for number, line in enumerate(_wrap_name(name)):
            body.append(f'<text x="{left + 9}" y="{top + 20 + _LINE * number:.0f}">{_svg_text(line)}</text>')
    return "\n".join([*body, "</svg>"])


def _wrap_name(name: str) -> list[str]:
    return wrap(terminal_line(name), _LETTERS, break_on_hyphens=False) or [""]


def _svg_text(text: str) -> str:
    return escape(terminal_line(text), quote=True)
