# SPDX-License-Identifier: Apache-2.0
"""What a run expects of its nodes and of the network between them. The launcher tests it before training starts
(launcher/preflight.py).

It is an input of the run beside the launch documents: their bytes may not change, and this may.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from catalog.platforms import LONGEST_EXPECTS
from components.plan.ports import connecting_roles
from launcher.expects import VERSION
from schemas.convert import camel_case

if TYPE_CHECKING:
    from components.plan.platform import PlannedNode, RulePlace
    from components.plan.ports import ResolvedJob

_LONGEST_REASON = 160


def run_expectations(job: ResolvedJob, place: RulePlace | None, nodes: Iterable[PlannedNode] = ()) -> Mapping[str, Any]:
    """The expectations of all runs of a job. `place`: where a rule between its nodes is added, if there are rules.
    `nodes`: what those of some roles have.

    Connections are pairs of a label and roles. The ports of a label are in the launch document. If a team's own
    framework has so many that the platform would not take them, no connection is tested.
    """
    connections: dict[str, dict[str, Any]] = {}
    for row, source, target in connecting_roles(job):
        if row.protocol == "tcp":
            told = connections.setdefault(
                row.label, {"from": {}, "to": {}, "why": row.why.partition(";")[0][:_LONGEST_REASON]}
            )
            told["from"][job.called(source)] = told["to"][job.called(target)] = True
    planned = ({camel_case(key): value for key, value in asdict(node).items() if value} for node in nodes)
    rows = [{**row, "roles": [*row["roles"]]} for row in planned if row.keys() > {"roles"}]
    expects: dict[str, Any] = {
        "version": VERSION,
        "preflight": job.spec.preflight,
        "connections": [
            {"label": label, "from": [*told["from"]], "to": [*told["to"]], "why": told["why"]}
            for label, told in connections.items()
        ],
        **({"nodes": rows} if rows else {}),
        **({"rules": {"place": place.words, "peer": place.peer}} if place else {}),
    }
    too_long = len(json.dumps(expects)) > LONGEST_EXPECTS
    return {**expects, "connections": []} if too_long else expects
