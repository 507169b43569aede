# SPDX-License-Identifier: Apache-2.0
"""Recorded answers of a local cloud about a small run: two workers that connect to a main node on one port."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from components.oci.iam.judge import Compartments
from components.oci.iam.parse import parse_statement
from components.oci.iam.printing import to_text
from components.oci.local.evidence import OciAccessFacts, read_recorded_call
from components.oci.local.rehearsal import OciPlannedNeeds
from components.platform.evidence import PlannedNeeds, PlannedStatement, PolicyInForce, RecordedCall
from components.platform.rehearsal import Artifact
from components.platform.traffic import RehearsedNode, Traffic, read_traffic
from components.values.protocols import TCP
from components.values.security_rules import Direction, SecurityRule
from trainyard.rehearsal.judgement import Observations
from trainyard.rehearsal.model import RankSeen, RunSeen

SUBNET, SERVICES = "10.60.0.0/24", "all-iad-services-in-oracle-services-network"
MAIN, FIRST, SECOND, STORE = "10.60.0.2", "10.60.0.3", "10.60.0.4", "198.51.100.2"
LIST = "ocid1.securitylist.oc1.iad.rules"
TENANCY, COMPARTMENT = "ocid1.tenancy.oc1..t", "ocid1.compartment.oc1..c"

NODES = (
    RehearsedNode("sum", "base", 0, "main", "main-0", MAIN),
    RehearsedNode("sum", "base", 1, "worker", "worker-0", FIRST),
    RehearsedNode("sum", "base", 2, "worker", "worker-1", SECOND),
)
PEOPLE = f"Allow group people to read data-science-jobs in compartment id {COMPARTMENT}"
OBJECTS = (
    f"Allow dynamic-group runs to {{OBJECT_CREATE, OBJECT_READ}} in compartment id {COMPARTMENT}"
    " where target.bucket.name = 'b'"
)
METRICS = f"Allow group people to read metrics in compartment id {COMPARTMENT}"
POLICY = "ring-access"


def rule(direction: str, index: int, peer: str, ports: list[int] | None, connections: int, why: str = "") -> Any:
    return {
        "list": LIST, "direction": direction, "index": index, "description": why, "protocol": "6", "peer": peer,
        "ports": ports, "node": 0, "packets": connections * 6, "connections": connections,
    }  # fmt: skip


def flow(direction: str, source: str, target: str, port: int, **more: Any) -> Any:
    return {"direction": direction, "from": source, "to": target, "port": port, "protocol": "tcp", **more}


def document(node: RehearsedNode, **more: Any) -> Any:
    """One job run with one node, as in the response of `GET /.trainyard/evidence`."""
    worker = node.rank > 0
    egress = [flow("egress", node.address, STORE, 443, connections=3)]
    return {
        "run": f"run{node.rank}",
        "enforced": True,
        "reason": "",
        "nodes": [{"rank": 0, "group": "", "address": node.address, "vnic": "v"}],
        "rules": [
            rule("ingress", 0, SUBNET, [7400, 7400], 0 if worker else 2, "workers bring their numbers"),
            rule("egress", 0, SUBNET, [7400, 7400], 1 if worker else 0, "workers bring their numbers"),
            rule("egress", 1, SERVICES, [443, 443], 3, "bucket, registry and logs"),
        ],
        "flows": [
            *egress,
            *([flow("egress", node.address, MAIN, 7400, connections=1)] if worker else []),
            *([] if worker else [flow("ingress", one, MAIN, 7400, connections=1) for one in (FIRST, SECOND)]),
        ],
        "dropped": [],
        **more,
    }


def seen_traffic(**more: Any) -> Traffic:
    return read_traffic((document(node, **more), (node,)) for node in NODES)


def call(
    operation: str, permissions: Iterable[str], principal: str, by: str | None, times: int = 1, **variables: str
) -> Any:
    """A row of `GET /.trainyard/calls`; `by` None is a refusal."""
    group = {"id": f"ocid1.group.{principal}", "name": principal, "domain": "Default"}
    user = principal == "people"
    wanted, about = list(permissions), {name.replace("_", "."): text for name, text in variables.items()}
    granted = (
        [{"permission": one, "policy": POLICY, "statement": to_text(parse_statement(by))} for one in wanted]
        if by
        else []
    )
    return {
        "id": 1, "first": "2026-05-01T12:00:00.000Z", "time": "2026-05-01T12:00:05.000Z", "times": times,
        "operation": operation,
        "principal": {
            "type": "user" if user else "datasciencejobrun", "id": "user" if user else "run1",
            "name": "", "compartment": COMPARTMENT, "groups": [group] if user else [],
            "dynamicGroups": [] if user else [group],
        },
        "target": {"compartment": COMPARTMENT, "variables": about},
        "permissions": wanted, "allowed": by is not None, "by": granted, "missing": [] if by else wanted,
    }  # fmt: skip


NAMES = {"user": "a user of people", "run1": "sum/base worker-0"}


def seen_calls() -> tuple[RecordedCall, ...]:
    rows = (
        call("GetJob", ["DATA_SCIENCE_JOB_READ"], "people", PEOPLE, 2),
        call("PutObject", ["OBJECT_CREATE"], "runs", OBJECTS, 5, target_bucket_name="b"),
        call("DeleteBucket", ["BUCKET_DELETE"], "runs", None, target_bucket_name="b"),
    )
    return tuple(read_recorded_call(row, NAMES) for row in rows)


def facts(*statements: str) -> OciAccessFacts:
    texts = tuple(to_text(parse_statement(text)) for text in statements or (PEOPLE, OBJECTS, METRICS))
    return OciAccessFacts(
        (PolicyInForce(POLICY, COMPARTMENT, texts),), Compartments(TENANCY, {COMPARTMENT: TENANCY}), "iad"
    )


def plan(**more: Any) -> PlannedNeeds:
    fields: dict[str, Any] = {
        "least": True,
        "rules": (
            _rule("ingress", SUBNET, 7400, "workers bring their numbers"),
            _rule("egress", SUBNET, 7400, "workers bring their numbers"),
            _rule("egress", "services", 443, "bucket, registry and logs"),
        ),
        "statements": tuple(
            PlannedStatement(to_text(parse_statement(text)), (why,))
            for text, why in ((PEOPLE, "people start runs"), (OBJECTS, "nodes meet"), (METRICS, "people see the use"))
        ),
    }
    return OciPlannedNeeds(**{**fields, **more})


def rank(number: int, state: str = "SUCCEEDED") -> RankSeen:
    return RankSeen(NODES[number], state, "", {"state": state.lower(), "firstStepSeconds": 0.5 + number})


def run(*ranks: RankSeen, **more: Any) -> RunSeen:
    told = ranks or tuple(rank(number) for number in range(3))
    return RunSeen("sum", "base", "ring", "own", "environment own", told, (Artifact("sum.txt", 1),), **more)


def seen(*runs: RunSeen, **more: Any) -> Observations:
    fields = {
        "stack": "ring", "seconds": 12.0, "runs": runs or (run(),), "traffic": seen_traffic(), "calls": seen_calls(),
        "access": facts(), "planned": plan(), "not_proven": ("bucket data: an empty one stands in",),
    }  # fmt: skip
    return Observations(**{**fields, **more})


def _rule(direction: Direction, peer: str, port: int, why: str) -> SecurityRule:
    return SecurityRule(direction=direction, peer=peer, protocol=TCP, ports=(port, port), description=why)
