# SPDX-License-Identifier: Apache-2.0
"""What runs expect of their nodes: the connections behind the rules, with the place of these rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from catalog.platforms import LONGEST_EXPECTS
from components.aws.stack import Cluster
from components.oci.stack import OciNetwork
from components.plan.model import INTERNET, SERVICES
from launcher.expects import STAND_IN_VARIABLE, VARIABLE, PlannedNode, read_expects
from schemas.model import Job, Role, Shape, Was
from tests.support.aws_plans import aws_job, aws_plan
from tests.support.openpai_jobs import planned
from tests.support.samples import job, plan


def expected(of: Job, **stack: Any) -> Mapping[str, Any]:
    return plan(jobs={"train": of}, **stack).jobs["train"].expects


@pytest.mark.parametrize("framework", ["pytorch", "torchrun", "horovod"])
def test_a_gang_meets_at_its_main_node_and_exchanges_data_both_ways(framework: str) -> None:
    rows = {row["label"]: row for row in expected(job(framework))["connections"]}
    assert (rows["rendezvous"]["from"], rows["rendezvous"]["to"]) == (["worker"], ["main"])
    assert set(rows["data"]["from"]) == set(rows["data"]["to"]) == {"main", "worker"}
    assert all(row["why"] and ";" not in row["why"] for row in rows.values())


@pytest.mark.parametrize("mode", ["least", "documented", "proof-of-concept"])
def test_connections_follow_from_the_framework_and_not_from_what_the_rules_let_through(mode: Any) -> None:
    dask = job("dask", {"scheduler": 1, "worker": 1})
    rows = expected(dask, network=OciNetwork(mode=mode))["connections"]
    pairs = {(source, target) for row in rows for source in row["from"] for target in row["to"]}
    assert pairs == {("worker", "scheduler"), ("scheduler", "worker")}
    if mode == "least":
        made = plan(jobs={"train": dask}, network=OciNetwork(mode=mode)).network.rules
        inside = {(rule.source, rule.target) for rule in made if rule.target not in (SERVICES, INTERNET)}
        assert inside == {(f"train/{source}", f"train/{target}") for source, target in pairs}


def test_nodes_know_a_renamed_role_by_its_oldest_name() -> None:
    renamed = job(roles={"main": 1}, framework="pytorch")
    roles = {"main": Role(1), "worker": Role(2, was=Was(("helper",)))}
    rows = expected(Job(**{**{name: getattr(renamed, name) for name in renamed.__slots__}, "roles": roles}))
    assert {role for row in rows["connections"] for role in row["from"]} == {"main", "helper"}


def test_the_place_of_a_rule_is_named_whoever_made_the_network() -> None:
    made = expected(job())["rules"]
    assert made["place"].startswith("security list vision-dev-rules of subnet ")
    assert made["place"].endswith(made["peer"])
    given = expected(job(), network=OciNetwork(subnet="ocid1.subnet.oc1.iad.a"))["rules"]
    assert "ocid1.subnet.oc1.iad.a" in given["place"]


@pytest.mark.parametrize("wanted", ["on", "warn", "off"])
def test_the_launcher_reads_what_the_plan_says(wanted: Any) -> None:
    told = expected(job(preflight=wanted))
    assert len(json.dumps(told)) < LONGEST_EXPECTS
    read = read_expects({VARIABLE: json.dumps(told)})
    assert read.preflight == wanted
    if wanted != "off":
        assert [one.label for one in read.connections] == [row["label"] for row in told["connections"]]
        assert (read.place, read.peer) == (told["rules"]["place"], told["rules"]["peer"])


def test_what_each_node_has_is_told_as_far_as_the_platform_knows_it(tmp_path: Path) -> None:
    (oci,) = expected(replace(job(shape=Shape("BM.GPU.MI300X.8")), block_storage_gb=200))["nodes"]
    assert oci == {
        "roles": ["main", "worker"], "devices": 8, "kind": "amd", "deviceGb": 192, "diskGb": 200,
    }  # fmt: skip
    (nvidia,) = expected(job())["nodes"]
    assert (nvidia["devices"], nvidia["kind"], nvidia["deviceGb"]) == (1, "nvidia", 24)
    (processors,) = expected(job(shape=Shape("VM.Standard3.Flex", 2, 8)))["nodes"]
    assert "devices" not in processors
    skus = {"small": {"cpus": 2, "memoryGb": 8, "gpus": 2, "shmMb": 2048}}
    roles = {"main": 1, "worker": 2}
    on_openpai = planned(tmp_path, {"framework": "pytorch", "shape": "small", "roles": roles}, skus=skus)
    assert on_openpai.jobs["train"].expects["nodes"] == [
        {"roles": [role], "devices": 2, "shmMb": 2048} for role in ("main", "worker")
    ]


@pytest.mark.parametrize(
    ("changes", "efa"),
    [
        ({}, True),
        ({"shape": Shape("p5.48xlarge"), "options": {"backend": "nccl"}}, True),
        ({"shape": Shape("p5.48xlarge"), "options": {"backend": "gloo"}}, False),
        ({"shape": Shape("c7i.48xlarge")}, False),  # no accelerators, so nothing of the image uses EFA
        ({"cluster": Cluster(efa=0)}, False),
        ({"roles": {"main": Role(1)}}, False),
    ],
)
def test_efa_is_expected_where_accelerators_of_several_nodes_use_it(changes: Any, efa: bool) -> None:
    (row,) = aws_plan(jobs={"resnet": aws_job(**changes)}).jobs["resnet"].expects["nodes"]
    assert (row.get("transport") == "efa") == efa
    assert "devices" not in row, "the program on the machine has counted them"


def test_the_launcher_reads_all_that_the_plan_says_of_nodes() -> None:
    told = expected(replace(job(), block_storage_gb=200))
    read = read_expects({VARIABLE: json.dumps(told)})
    assert read.node_of_role("worker") == PlannedNode(("main", "worker"), 1, "nvidia", 24, 200)
    assert read.node_of_role("other") == PlannedNode()
    assert read_expects({VARIABLE: json.dumps(told), STAND_IN_VARIABLE: "pytorch"}).nodes == ()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 2, "preflight": "on"}', '{"version": 1}', "[" * 100000])
def test_another_release_s_expectations_are_not_tested(text: str) -> None:
    assert read_expects({VARIABLE: text}).preflight == "off"
