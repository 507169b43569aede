# SPDX-License-Identifier: Apache-2.0
"""The rows of AWS's machines say what AWS's own list of instance types says, as moto's data has it."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import moto.ec2
import pytest

from catalog.tables import table
from tests.support.aws_inside import aws_inside

MACHINES = table("aws_machines")["machines"]
# The data has no DL1. The local AWS adds it.
NOT_LISTED = {"dl1.24xlarge"}
ACCELERATORS = {"GpuInfo": ("Gpus", "nvidia"), "NeuronInfo": ("NeuronDevices", "neuron")}


@cache
def listed_types() -> dict[str, Any]:
    file = Path(moto.ec2.__file__).parent / "resources" / "instance_types.json.gz"
    types: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return types


def row_by_list(listed: dict[str, Any]) -> dict[str, Any]:
    network = listed["NetworkInfo"]
    cards = network["NetworkCards"]
    row: dict[str, Any] = {
        "vcpus": listed["VCpuInfo"]["DefaultVCpus"],
        "memory_gb": listed["MemoryInfo"]["SizeInMiB"] / 1024,
        "accelerator": "none",
        "network_cards": len(cards),
    }
    (row["interfaces_per_card"],) = {card["MaximumNetworkInterfaces"] for card in cards}
    for key, (kinds, accelerator) in ACCELERATORS.items():
        for kind in listed.get(key, {}).get(kinds, ()):
            row |= {"accelerator": accelerator, "accelerators": kind["Count"], "model": kind["Name"]}
    for disks in listed.get("InstanceStorageInfo", {}).get("Disks", ()):
        row |= {"disks": disks["Count"], "disk_gb": disks["SizeInGB"]}
    if most := network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0):
        row["efa_interfaces"] = most
        carrying = [card["NetworkCardIndex"] for card in cards if "efa" in card["InterfaceTypes"]]
        assert len(carrying) == most
        if first := min(carrying):
            row["efa_from_card"] = first
    assert {"on-demand", "spot"} <= set(listed["SupportedUsageClasses"])
    if "capacity-block" in listed["SupportedUsageClasses"]:
        row["blocks"] = True
    return row


@pytest.mark.parametrize("name", sorted(MACHINES.keys() - NOT_LISTED))
def test_a_machine_is_what_its_row_says(name: str) -> None:
    own = {key: value for key, value in MACHINES[name].items() if key not in ("quota", "processes")}
    assert own == row_by_list(listed_types()[name])


def test_the_local_aws_lists_the_others_by_their_rows(tmp_path: Path) -> None:
    from moto.ec2.models.instance_types import INSTANCE_TYPES

    with aws_inside(tmp_path) as inside:
        inside.ask(inside.deployer, "ec2", "DescribeVpcs")
        for name in NOT_LISTED:
            listed = row_by_list(INSTANCE_TYPES[name])
            assert listed.pop("accelerator") == "none", "AWS's list has no words for it"
            assert listed.items() <= MACHINES[name].items()


def test_every_machine_has_rows_of_its_accelerator_and_its_quota() -> None:
    tables = table("aws_machines")
    assert {row["accelerator"] for row in MACHINES.values()} == table("aws_accelerators").keys()
    assert {row["quota"] for row in MACHINES.values()} == tables["quotas"].keys()
    assert tables["usd_per_hour"].keys() <= MACHINES.keys()
    assert not NOT_LISTED & listed_types().keys()
