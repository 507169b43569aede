# SPDX-License-Identifier: Apache-2.0
"""Rehearsals of clusters: machines train for the stack's users, under the stack's rules and statements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from catalog.environments import Need
from localcloud.environments.find import MissingEnvironment, find_environment_for
from tests.support.rehearsing import Rehearsals

pytestmark = pytest.mark.engine

STACK = "aws-dl1-resnet"
SMALL = "train.py --epochs 1 --steps 2 --batch 2 --size 32 --blocks 14 --width 8"
SEALED = '{secure: "v1:Yk9sYmFsbG9vbg==:2mVjdG9yc2VjcmV0"}'
NODES, PEOPLE = "vision-prod-nodes", "vision-prod-users"


@pytest.fixture
def stack(tmp_path: Path) -> Rehearsals:
    if isinstance(find_environment_for(Need("pytorch", None, frozenset({"torch"}))), MissingEnvironment):
        pytest.skip("no local environment with PyTorch")
    one = Rehearsals.of_examples(tmp_path, STACK)
    one.change(f"Pulumi.{STACK}.yaml", "train.py --epochs 90 --batch 256", SMALL)
    return one


def rules(report: dict[str, Any]) -> dict[str, list[str]]:
    return {rule["rule"]: rule["pairs"] for rule in report["rules"] if rule["connections"]}


def actions(report: dict[str, Any], policy: str) -> set[str]:
    """The actions of a policy's statements that allowed a call."""
    own = [json.loads(one["statement"]) for one in report["statements"] if one["policy"] == policy and one["calls"]]
    return {action for one in own for action in ([one["Action"]] if isinstance(one["Action"], str) else one["Action"])}


@pytest.mark.torture
def test_a_cluster_is_rehearsed_and_a_failure_of_its_code_is_reported(stack: Rehearsals) -> None:
    """One run trains. The other fails on one machine, and its last lines say why."""
    code = "rank, size = dist.get_rank(), dist.get_world_size()\n"
    spoilt = code + '    if options.lr == 0.4 and rank:\n        raise SystemExit("the learning rate is too high")\n'
    # The nodes of one run read its secret from Secrets Manager.
    spoilt += (
        '    if options.lr != 0.4 and not __import__("os").environ.get("HF_TOKEN"):\n        raise SystemExit(1)\n'
    )
    stack.change(f"Pulumi.{STACK}.yaml", "        base: {}", f"        base: {{env: {{HF_TOKEN: {SEALED}}}}}")
    stack.change("examples/resnet-ddp/train.py", code, spoilt)
    report = stack.report(STACK)
    assert (report["verdict"], report["firewall"]) == ("failed", "enforced"), report
    base, warm = report["runs"]
    assert (base["verdict"], warm["verdict"]) == ("passed", "failed"), report
    assert [(rank["name"], rank["joined"], rank["carried"]) for rank in base["ranks"]] == [
        ("main-0", True, True), ("worker-0", True, True),
    ]  # fmt: skip
    assert all(rank["load"]["bytes"] > 1000 for rank in base["ranks"])
    assert [one["name"] for one in base["artifacts"]] == ["result.json"]
    assert any("[1 worker-0]" in line and "the learning rate is too high" in line for line in warm["lastLines"])
    between = rules(report)[f"ingress from {NODES}, every protocol"]
    assert any(pair.startswith("resnet/base worker-0 -> resnet/base main-0 tcp 29400") for pair in between)
    assert f"egress to {NODES}, every protocol" in rules(report)
    assert "egress to com.amazonaws.us-east-1.s3, tcp 443" in rules(report)
    assert {"s3:GetObject", "s3:PutObject", "logs:PutLogEvents"} <= actions(report, NODES)
    assert {"ssm:SendCommand", "s3:PutObject", "logs:GetLogEvents"} <= actions(report, PEOPLE)
    assert all(one["why"] for one in report["statements"])
    assert report["refused"] == []
    not_proven = " ".join(report["notProven"])
    assert all(one in not_proven for one in ("gloo", "HCCL", "EFA", "docker", "one process")), not_proven
    assert stack.left() == []


@pytest.mark.torture
def test_each_rule_and_statement_is_needed_or_reported_as_never_needed(stack: Rehearsals) -> None:
    """On four machines. Some predictions of the report are tried."""
    stack.change(f"Pulumi.{STACK}.yaml", "roles: {main: 1, worker: 1}", "roles: {main: 1, worker: 3}")
    stack.change(f"Pulumi.{STACK}.yaml", "quota: {vcpus: 192}", "quota: {vcpus: 384}")
    report = stack.report(STACK, "--prove", "--confirm", "6", "--seed", "7")
    assert report["verdict"] == "passed", report
    assert all(len(run["ranks"]) == 4 and all(rank["carried"] for rank in run["ranks"]) for run in report["runs"])
    outcomes = report["proof"]["outcomes"]
    deleted = [one for one in outcomes if one["kind"] == "deleted"]
    assert len(deleted) == len(report["rules"]) + len(report["statements"])
    assert {one["fate"] for one in deleted if one["of"] == "rule"} == {"fails"}, deleted
    survivors = [one for one in deleted if one["fate"] == "survives"]
    assert all(one["because"].startswith("nothing in this rehearsal needed it, which is there") for one in survivors)
    assert report["proof"]["unexplained"] == 0, [one for one in outcomes if not one["explained"]]
    assert {one["of"] for one in report["confirmed"]} == {"rule", "statement"}
    assert all(one["because"].startswith("seen as predicted") for one in report["confirmed"]), report["confirmed"]
    assert stack.left() == []


@pytest.mark.torture
@pytest.mark.parametrize("name", ["aws-dl1-single-node", "aws-dl1-existing-vpc"])
def test_the_other_examples_are_rehearsed(name: str, tmp_path: Path) -> None:
    """A stack whose users assume a role, and one with an existing network, roles and bucket."""
    report = Rehearsals.of_examples(tmp_path, name).report(name, "--prove", "--confirm", "2")
    assert report["verdict"] == "passed", report
    assert {one["fate"] for one in report["proof"]["outcomes"] if one["of"] == "statement"} >= {"fails", "caught"}
    assert all(one["because"].startswith("seen as predicted") for one in report["confirmed"]), report["confirmed"]
    assert len(report["confirmed"]) == 2
    assert report["refused"] == [], report["refused"]
    assert report["proof"]["unexplained"] == 0, report["proof"]


@pytest.mark.torture
@pytest.mark.parametrize("beside", [True, False], ids=["its own file", "a stand-in"])
def test_a_stack_that_takes_its_network_from_another_is_rehearsed(beside: bool, tmp_path: Path) -> None:
    """Machines of one stack in the subnet and security group of another, which has no jobs."""
    stacks = Rehearsals.of_examples(tmp_path, STACK)
    shared, team = "Pulumi.network.yaml", f"Pulumi.{STACK}.yaml"
    text = (stacks.stacks / team).read_text()
    if beside:
        (stacks.stacks / shared).write_text(
            text.partition("  trainyard:jobs:")[0].replace("team: vision", "team: base")
        )
        stacks.change(shared, "vision-prod-gaudi", "base-prod-gaudi")
        stacks.change(shared, "vision/gaudi", "base/gaudi")
    taken = "  trainyard:uses: {stack: organization/trainyard/network, take: [network]}"
    stacks.change(team, "  trainyard:network: {cidr: 10.40.0.0/16, zone: us-east-1a}", taken)
    stacks.change(team, "train.py --epochs 90 --batch 256", SMALL)
    report = stacks.report(STACK)
    assert report["verdict"] == "passed", report
    prefix = "base-prod" if beside else "platform-stand-in"
    assert f"ingress from {prefix}-nodes, every protocol" in rules(report)
    assert any("one with the defaults stands in" in one for one in report["notProven"]) is not beside
    assert report["refused"] == [], report["refused"]
