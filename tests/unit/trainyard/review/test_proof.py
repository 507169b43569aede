# SPDX-License-Identifier: Apache-2.0
"""Whether a rehearsal proves a change: proven, not proven, or not needed. Unchanged rules are not judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from catalog.platforms import require_capability
from components.platform.review import ReviewPlatform, Snapshot
from tests.support.reviews import id_of, resource
from tests.unit.trainyard.rehearsal.recorded import COMPARTMENT, METRICS, OBJECTS, PEOPLE, SERVICES, SUBNET, seen
from trainyard.rehearsal.judgement import judge_rehearsal
from trainyard.rehearsal.report import rehearsal_json
from trainyard.review.evaluate import CheckFindings, ReviewContext, review_snapshots
from trainyard.review.gates import find_tripped_gates, parse_gates
from trainyard.review.model import Review
from trainyard.review.proof import RehearsalError, read_rehearsal

LIST, ROUTES = "oci:Core/securityList:SecurityList", "oci:Core/routeTable:RouteTable"
SECRETS = f"Allow group people to read secret-bundles in compartment id {COMPARTMENT}"
OTHERS = f"Allow group others to read data-science-jobs in compartment id {COMPARTMENT}"
Change = Callable[[dict[str, Any]], Any]


def tcp(end: str, peer: str, first: int, last: int | None = None) -> dict[str, Any]:
    kind = "CIDR_BLOCK" if "/" in peer else "SERVICE_CIDR_BLOCK"
    ports = {"tcpOptions": {"min": first, "max": last or first}}
    return {"protocol": "6", end: peer, f"{end}Type": kind, **ports}


def side(
    *statements: str, ingress: Any = (), egress: Any = (), bucket: str = "NoPublicAccess", **table: Any
) -> Snapshot:
    made = (
        resource("oci:Core/vcn:Vcn", "vcn", cidrBlocks=["10.60.0.0/16"]),
        resource(
            "oci:Core/subnet:Subnet",
            "subnet",
            cidrBlock=SUBNET,
            prohibitPublicIpOnVnic=True,
            securityListIds=[id_of(LIST, "rules")],
            routeTableId=id_of(ROUTES, "routes"),
        ),
        resource(
            LIST,
            "rules",
            ingressSecurityRules=list(ingress),
            egressSecurityRules=[tcp("destination", SERVICES, 443), *egress],
        ),
        resource(ROUTES, "routes", routeRules=list(table.get("routes", ()))),
        resource("oci:Identity/policy:Policy", "access", compartmentId=COMPARTMENT, statements=list(statements)),
        resource("oci:ObjectStorage/bucket:Bucket", "bucket", name="b", accessType=bucket),
    )
    return Snapshot("ring", "oci", {"compartment": COMPARTMENT}, made)


def report(tmp_path: Path, change: Change | None = None) -> Any:
    document = json.loads(rehearsal_json(judge_rehearsal(seen())))
    if change:
        change(document)
    file = tmp_path / "rehearsal.json"
    file.write_text(json.dumps(document), "utf-8")
    return read_rehearsal(file, document["stack"])


def reviewed(before: Snapshot, after: Snapshot, rehearsal: Any) -> Review:
    context = ReviewContext(date(2026, 11, 26))
    return review_snapshots(before, after, "changed", CheckFindings("Pulumi.ring.yaml"), context, rehearsal)


MEET = tcp("source", SUBNET, 7400)


def test_what_a_rehearsal_needed_is_proven(tmp_path: Path) -> None:
    found = reviewed(side(PEOPLE), side(PEOPLE, OBJECTS, ingress=[MEET]), report(tmp_path))
    rule, statement = found.proven
    assert rule.startswith(f"proven: TCP 7400 into the subnet, from {SUBNET}: sum/base worker-0 -> sum/base main-0")
    assert statement.startswith("proven: Allow dynamic-group runs to")
    assert statement.endswith("target.bucket.name = 'b': PutObject")
    assert (found.unproven, found.unneeded) == ((), ())
    assert find_tripped_gates([found], parse_gates("unproven")) == ()


def test_what_both_sides_let_through_takes_no_proof(tmp_path: Path) -> None:
    whole = side(PEOPLE, METRICS, OTHERS, ingress=[MEET])
    found = reviewed(whole, whole, report(tmp_path))
    assert (found.proven, found.unproven, found.unneeded) == ((), (), ())


def unused(document: dict[str, Any]) -> None:
    rule = {**document["rules"][0], "ports": [7300, 7500], "peer": SUBNET, "direction": "ingress"}
    document["rules"].append(rule)


def test_what_the_rehearsal_had_without_need_is_not_needed(tmp_path: Path) -> None:
    wider = tcp("source", SUBNET, 7400, 7450)
    found = reviewed(side(PEOPLE, ingress=[MEET]), side(PEOPLE, METRICS, ingress=[wider]), report(tmp_path, unused))
    # The rule was used, but not for the ports that the change opens.
    assert [one.partition(": no ")[0] for one in found.unneeded] == [
        f"not needed: TCP 7401-7450 into the subnet, from {SUBNET}",
        f"not needed: {METRICS}",
    ]
    assert (found.proven, found.unproven) == ((), ())
    assert len(find_tripped_gates([found], parse_gates("unproven"))) == 2


def test_what_another_rule_allowed_before_is_not_needed(tmp_path: Path) -> None:
    def internet(document: dict[str, Any]) -> None:
        document["rules"].append({"direction": "egress", "protocol": "tcp", "ports": [443, 443], "peer": "0.0.0.0/0"})

    anywhere = tcp("destination", "0.0.0.0/0", 443)
    found = reviewed(side(), side(egress=[anywhere]), report(tmp_path, internet))
    assert len(found.unneeded) == 1
    assert found.unneeded[0].startswith("not needed: TCP 443 out of the subnet, to anywhere")


def test_what_the_rehearsal_never_had_is_not_proven(tmp_path: Path) -> None:
    nat = {"destination": "0.0.0.0/0", "networkEntityId": "ocid1.natgateway.oc1.iad.a"}
    found = reviewed(
        side(PEOPLE),
        side(PEOPLE, SECRETS, ingress=[tcp("source", SUBNET, 9000)], bucket="ObjectRead", routes=[nat]),
        report(tmp_path),
    )
    assert [one.rpartition(": ")[2] for one in found.unproven] == [
        "the rehearsal had no such rule",
        "a rehearsal has no routes",
        "the rehearsal had no such statement",
        "no new statement grants it, so a rehearsal cannot prove it",
    ]
    assert (found.proven, found.unneeded) == ((), ())


def test_a_statement_that_grants_nothing_new_takes_no_proof(tmp_path: Path) -> None:
    found = reviewed(side(PEOPLE), side(PEOPLE, PEOPLE.replace("read", "inspect")), report(tmp_path))
    assert (found.proven, found.unproven, found.unneeded) == ((), (), ())


def test_no_rule_is_proven_where_none_were_in_force(tmp_path: Path) -> None:
    def open_to_all(document: dict[str, Any]) -> None:
        document["firewall"] = "not enforced: no namespaces"

    found = reviewed(side(), side(ingress=[MEET]), report(tmp_path, open_to_all))
    assert [one.rpartition(": ")[2] for one in found.unproven] == ["no rules were in force in the rehearsal"]


def test_without_a_rehearsal_a_change_is_not_proven_and_a_report_of_another_stack_is_refused(tmp_path: Path) -> None:
    assert len(reviewed(side(), side(ingress=[MEET]), None).unproven) == 1
    file = tmp_path / "rehearsal.json"
    file.write_text(rehearsal_json(judge_rehearsal(seen())))
    with pytest.raises(RehearsalError, match="not other"):
        read_rehearsal(file, "other")
    file.write_text("{}")
    with pytest.raises(RehearsalError, match="is not a report"):
        read_rehearsal(file, "other")


def test_values_that_only_a_cloud_knows_may_differ(tmp_path: Path) -> None:
    def role(account: str, *actions: str) -> Snapshot:
        on = f"arn:aws:logs:us-east-1:{account}:log-group:ring"
        statements = [{"Effect": "Allow", "Action": list(actions), "Resource": on}] if actions else []
        return Snapshot(
            "ring",
            "aws-dl1",
            {},
            (
                resource("aws:iam/role:Role", "nodes", name="nodes"),
                resource("aws:iam/rolePolicy:RolePolicy", role="nodes", policy=json.dumps({"Statement": statements})),
            ),
        )

    def one_more(document: dict[str, Any]) -> None:
        (text,) = require_capability("aws-dl1", ReviewPlatform).statements(role("123456789012", "logs:PutLogEvents"))
        document["statements"].append({"statement": text, "calls": 2, "operations": ["logs:PutLogEvents"]})

    found = reviewed(role("a"), role("(unknown) account", "logs:PutLogEvents"), report(tmp_path, one_more))
    assert len(found.proven) == 1
    found = reviewed(role("a"), role("(unknown) account", "logs:CreateLogStream"), report(tmp_path, one_more))
    assert len(found.unproven) == 1
