# SPDX-License-Identifier: Apache-2.0
"""Each kind of mutation: when it fails, when it is caught, and when it survives with a reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.oci import iam
from components.oci.iam.permissions import verb_covers
from components.oci.local.evidence import statement_mutations, wider_grant
from components.platform.evidence import rule_mutations
from components.platform.traffic import read_traffic
from tests.unit.trainyard.rehearsal.recorded import (
    FIRST,
    MAIN,
    METRICS,
    NODES,
    OBJECTS,
    PEOPLE,
    STORE,
    SUBNET,
    document,
    facts,
    flow,
    plan,
    rule,
    seen_calls,
    seen_traffic,
)
from trainyard.rehearsal.mutations import MutationOutcome, Proof, prove_by_mutations


def proof(**more: Any) -> Proof:
    arguments = {"traffic": seen_traffic(), "calls": seen_calls(), "access": facts(), "planned": plan(), **more}
    return prove_by_mutations(**arguments)


def one(found: Proof, kind: str, text: str, after: str = "") -> MutationOutcome:
    (outcome,) = [
        each for each in found.outcomes if each.kind == kind and text in each.title and after in each.title
    ]  # fmt: skip
    return outcome


def test_every_rule_and_statement_has_its_mutations_and_none_survives_unexplained() -> None:
    found = proof()
    rules = [outcome for outcome in found.outcomes if outcome.of == "rule"]
    assert len(rules) == 9
    statements = [outcome for outcome in found.outcomes if outcome.of == "statement"]
    # Deleted and turned around each; a verb wider each; and the one condition.
    assert len(statements) == 3 * 3 + 1
    assert found.unexplained == ()


@pytest.mark.parametrize("way", ["ingress from", "egress to"])
@pytest.mark.parametrize("kind", ["deleted", "turned around"])
def test_without_a_rule_the_pairs_it_joined_are_named(way: str, kind: str) -> None:
    outcome = one(proof(), kind, f"{way} {SUBNET}")
    assert outcome.fate == "fails"
    assert "sum/base worker-0 -> sum/base main-0 tcp 7400" in outcome.because
    assert "sum/base worker-1 -> sum/base main-0 tcp 7400" in outcome.because


def test_without_the_way_to_the_services_every_node_fails() -> None:
    outcome = one(proof(), "deleted", "egress to all-iad-services")
    assert outcome.fate == "fails"
    assert f"sum/base main-0 -> the services ({STORE}) tcp 443" in outcome.because


def test_one_port_more_is_more_than_the_plan_asks_for() -> None:
    outcome = one(proof(), "widened", f"ingress from {SUBNET}")
    assert (outcome.fate, outcome.because) == ("caught", "the plan asks for no such port: 7401")


def test_one_port_more_that_another_rule_opens_anyway_is_no_more() -> None:
    rules = (*plan().rules, replace(plan().rules[0], ports=(7401, 7500)))
    outcome = one(proof(planned=plan(rules=rules)), "widened", f"ingress from {SUBNET}")
    assert (outcome.fate, outcome.explained) == ("survives", True)


def test_an_idle_rule_survives_with_what_it_is_for() -> None:
    idle = rule("ingress", 1, SUBNET, [3100, 3100], 0, "restarting workers")
    rules = [*document(NODES[0])["rules"], idle]
    asked = plan(rules=(*plan().rules, replace(plan().rules[0], ports=(3100, 3100))))
    outcome = one(proof(traffic=seen_traffic(rules=rules), planned=asked), "deleted", "tcp 3100")
    assert (outcome.fate, outcome.explained) == ("survives", True)
    assert "restarting workers" in outcome.because


def test_a_duplicate_rule_is_unexplained_in_mode_least() -> None:
    twice = [*document(NODES[0])["rules"], rule("ingress", 1, SUBNET, [7000, 7999], 0)]
    found = proof(traffic=seen_traffic(rules=twice))
    outcome = one(found, "deleted", f"without ingress from {SUBNET}, tcp 7400")
    assert (outcome.fate, outcome.explained) == ("survives", False)
    assert "tcp 7000-7999" in outcome.because
    relaxed = proof(traffic=seen_traffic(rules=twice), planned=plan(least=False))
    assert one(relaxed, "deleted", f"without ingress from {SUBNET}, tcp 7400").explained


def test_without_a_firewall_no_rule_fails() -> None:
    quiet = seen_traffic(enforced=False, reason="no privilege", flows=[])
    outcome = one(proof(traffic=quiet), "deleted", f"ingress from {SUBNET}")
    assert (outcome.fate, outcome.because) == ("survives", "no firewall was enforced here: no privilege")


def test_every_port_cannot_be_widened() -> None:
    everything = read_traffic([(document(NODES[0], rules=[rule("ingress", 0, SUBNET, None, 2)]), NODES)])
    assert [mutation.kind for mutation in rule_mutations(everything.rules)] == ["deleted", "turned around"]


def test_the_policy_pack_stops_what_is_open_to_the_world() -> None:
    rules = [rule("ingress", 0, "0.0.0.0/0", [7400, 7400], 0)]
    world = read_traffic([(document(NODES[0], rules=rules, flows=[]), NODES[:1])])
    (turned,) = [mutation for mutation in rule_mutations(world.rules) if mutation.kind == "turned around"]
    stopped = plan().refused_list(world.rules) - plan().refused_list(turned.applied(world.rules))
    assert stopped == {"ingress-from-anywhere"}


def test_without_a_statement_the_missing_permission_is_named() -> None:
    assert one(proof(), "deleted", PEOPLE).because == "a user of people lacks DATA_SCIENCE_JOB_READ for GetJob"
    outcome = one(proof(), "deleted", "dynamic-group runs")
    assert (outcome.fate, outcome.because) == ("fails", "sum/base worker-0 lacks OBJECT_CREATE for PutObject")


def test_a_statement_for_another_group_fails_for_its_own() -> None:
    assert one(proof(), "turned around", OBJECTS.split(" in ")[1]).fate == "fails"


def test_a_wider_verb_brings_what_the_plan_does_not_need() -> None:
    outcome = one(proof(), "widened", PEOPLE)
    assert outcome.fate == "caught"
    assert "DATA_SCIENCE_JOB" in outcome.because


def test_a_statement_without_its_condition_is_caught_too() -> None:
    outcome = one(proof(), "widened", "dynamic-group runs", "without its condition")
    assert (outcome.fate, outcome.because) == ("caught", "policy unnarrowed-statements")


def test_a_statement_that_nothing_needed_survives_with_what_it_is_for() -> None:
    outcome = one(proof(), "deleted", METRICS)
    assert (outcome.fate, outcome.explained) == ("survives", True)
    assert "people see the use" in outcome.because


def test_two_statements_for_the_same_are_named() -> None:
    also = PEOPLE.replace("read", "manage")
    outcome = one(proof(access=facts(PEOPLE, also, OBJECTS)), "deleted", f"without `{PEOPLE}`")
    assert (outcome.fate, outcome.explained) == ("survives", False)
    assert "manage data-science-jobs" in outcome.because


def test_single_permissions_are_widened_to_the_next_verb() -> None:
    grant = wider_grant(iam.PermissionGrant(("OBJECT_READ",)))
    assert isinstance(grant, iam.VerbGrant)
    assert verb_covers(grant.verb, grant.resource_type) > {"OBJECT_READ"}
    assert wider_grant(iam.VerbGrant("manage", "objects")) is None


def test_a_mutation_changes_its_own_rule_and_statement_only() -> None:
    rules = seen_traffic().rules
    for mutation in rule_mutations(rules):
        kept = [one for one in mutation.applied(rules) if one is not mutation.after]
        assert kept == [one for one in rules if one is not mutation.before]
    for statement in statement_mutations(facts().policies):
        (policy,) = statement.applied(facts().policies)
        assert len(set(facts().policies[0].statements) - set(policy.statements)) == 1


def test_dropped_packets_are_no_connections() -> None:
    dropped = [flow("ingress", FIRST, MAIN, 9999, packets=4)]
    assert seen_traffic(dropped=dropped).failing(seen_traffic().rules) == ()
