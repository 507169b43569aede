# SPDX-License-Identifier: Apache-2.0
"""What machines are told of their accelerators, and what their program makes of it: rows of the catalog."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from catalog.aws import accelerator_of_machine, aws_machine
from catalog.tables import table
from components.aws.node_setup import node_accelerator
from launcher.aws_dl1.accelerators import Accelerator, parse_accelerator
from launcher.aws_dl1.host_nic import BEFORE_NODE_JSON_NAMED_THEM
from launcher.aws_dl1.machine import equipment
from launcher.aws_dl1.machine.facts import MachinePaths, read_machine_settings
from launcher.errors import LaunchError
from schemas.model import Shape
from tests.support.aws_plans import aws_job, aws_plan

MACHINES = table("aws_machines")["machines"]
GIVEN = {
    "region": "us-east-1", "bucket": "vision-dev", "job": "resnet", "launcher": "a.tar.gz", "code": None,
    "logGroup": None, "sshSecret": "key", "sshPort": 3022, "image": "train:1", "release": "",
    "hostNic": "libfabric", "efaInterfaces": 0, "stopWhenIdleMinutes": 0,
}  # fmt: skip


def accelerator_of(machine: str) -> Accelerator:
    told = node_accelerator(machine)
    return BEFORE_NODE_JSON_NAMED_THEM if told is None else parse_accelerator(json.loads(json.dumps(told)))


def paths_with(folder: Path, **settings: Any) -> MachinePaths:
    paths = MachinePaths(folder)
    paths.settings.parent.mkdir(parents=True)
    paths.settings.write_text(json.dumps({**GIVEN, **settings}))
    return paths


def test_the_program_knows_the_row_that_node_json_leaves_out() -> None:
    """All machines of earlier releases have this node.json, and it must not change."""
    assert {name for name in MACHINES if node_accelerator(name) is None} == {"dl1.24xlarge"}
    machine, row = aws_machine("dl1.24xlarge"), accelerator_of_machine("dl1.24xlarge")
    assert machine is not None
    for column in fields(Accelerator):
        wanted = machine.accelerators if column.name == "count" else getattr(row, column.name)
        assert getattr(BEFORE_NODE_JSON_NAMED_THEM, column.name) == wanted, column.name


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_every_machine_is_told_what_its_containers_need(name: str) -> None:
    machine, row, told = aws_machine(name), accelerator_of_machine(name), accelerator_of(name)
    assert machine is not None
    assert row is not None
    for column in fields(Accelerator):
        wanted = machine.accelerators if column.name == "count" else getattr(row, column.name)
        assert getattr(told, column.name) == wanted, column.name
    words = told.docker_words()
    assert (f"--runtime={row.runtime}" in words) is bool(row.runtime)
    assert not any("{" in word for word in words)
    devices = [word for word in words if word.startswith("--device=/dev/neuron")]
    indexed = any("{index}" in word for word in row.docker)
    assert devices == ([f"--device=/dev/neuron{number}" for number in range(machine.accelerators)] if indexed else [])


@pytest.mark.parametrize(
    ("machine", "variables"),
    [
        ("p5.48xlarge", {"FI_EFA_USE_HUGE_PAGE": "0", "NVIDIA_VISIBLE_DEVICES": "all"}),
        ("g6e.xlarge", {"NVIDIA_VISIBLE_DEVICES": "all"}),
        ("trn1.32xlarge", {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "FI_EFA_FORK_SAFE": "1"}),
        ("trn1.2xlarge", {}),
        ("c7i.48xlarge", {}),
    ],
)
def test_nodes_are_told_of_their_transport_where_they_have_efa(machine: str, variables: dict[str, str]) -> None:
    plan = aws_plan(jobs={"resnet": aws_job(shape=Shape(machine))})
    (node, *_) = plan.jobs["resnet"].runs["base"].nodes
    assert node.environment == variables


def test_accelerators_that_meet_at_the_first_node_are_told_its_address() -> None:
    assert accelerator_of("trn1.32xlarge").meeting_variables("10.0.0.4") == {"NEURON_RT_ROOT_COMM_ID": "10.0.0.4:62182"}
    assert accelerator_of("p5.48xlarge").meeting_variables("10.0.0.4") == {}


GPUS = "".join(f"GPU {number}: NVIDIA H100 80GB HBM3 (UUID: GPU-{number})\n" for number in range(8))


@pytest.mark.parametrize(
    ("machine", "output", "count"),
    [
        ("p5.48xlarge", GPUS, 8),
        ("p5.48xlarge", GPUS.replace(" (UUID: GPU-3)\n", "\n  MIG 1g.10gb Device 0: (UUID: MIG-1)\n"), 8),
        ("dl1.24xlarge", "0\n1\n2\n3\n4\n5\n6\n7\n", 8),
        ("trn1.32xlarge", json.dumps([{"neuron_device": number} for number in range(16)]), 16),
        ("trn1.32xlarge", "[]", 0),
    ],
)
def test_accelerators_are_counted_as_their_program_lists_them(machine: str, output: str, count: int) -> None:
    assert accelerator_of(machine).count_shown(output) == count


@pytest.mark.parametrize("output", ["{}", "no device"])
def test_what_is_no_list_is_not_counted(output: str) -> None:
    with pytest.raises(ValueError, match=r"not a list|Expecting value"):
        accelerator_of("trn1.32xlarge").count_shown(output)


@pytest.mark.parametrize(
    ("machine", "outputs", "problems"),
    [
        ("p5.48xlarge", {"docker": '{"Runtimes": {"runc": {}, "nvidia": {}}}', "nvidia-smi": GPUS}, []),
        (
            "p5.48xlarge",
            {"docker": '{"Runtimes": {"runc": {}}}', "nvidia-smi": GPUS.partition("GPU 3")[0]},
            [
                "docker has no runtime `nvidia`, only runc: use an AMI made for NVIDIA GPUs, or",
                "the driver shows 3 of 8 NVIDIA GPUs",
            ],
        ),
        ("p5.48xlarge", {"docker": "", "nvidia-smi": ""}, ["docker does not answer", "the driver shows 0 of 8 NVIDIA"]),
        ("trn1.2xlarge", {"docker": "{}", "neuron-ls": "no"}, ["the driver of Trainium does not answer"]),
        ("trn1.2xlarge", {"docker": "{}", "neuron-ls": '[{"neuron_device": 0}]'}, []),
        ("c7i.xlarge", {"docker": "{}"}, []),
    ],
)
def test_the_equipment_is_that_of_the_machine_s_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, outputs: dict[str, str], problems: list[str]
) -> None:
    paths = paths_with(tmp_path / "machine", accelerator=node_accelerator(machine))
    for name, output in {**outputs, "sh": ""}.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\nexec /bin/cat <<'END'\n{output}\nEND\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    checked = equipment.check_equipment(read_machine_settings(paths), paths)
    found = equipment.equipment_problems(checked)
    assert len([row for row in checked if row.problem]) == len(problems), found
    assert all(problem in found for problem in problems), found


@pytest.mark.parametrize("row", [{}, [], {"words": "GPUs", "count": "many"}, {"words": "GPUs", "environment": 1}])
def test_a_row_that_cannot_be_read_is_said(tmp_path: Path, row: object) -> None:
    paths = paths_with(tmp_path, accelerator=row)
    with pytest.raises(LaunchError, match="make the machine anew by its stack"):
        read_machine_settings(paths)
