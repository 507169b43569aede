# SPDX-License-Identifier: Apache-2.0
"""One stack file on two platforms: keys of only one platform are ignored on the other, with a remark."""

from __future__ import annotations

from typing import Any

import pytest

from components.openpai.protocol import protocol_problems, task_command
from tests.programs.conftest import Written
from tests.support.recorder.client import ProgramError

_OF_OPENPAI: dict[str, Any] = {
    "trainyard:platform": "openpai",
    "trainyard:cluster": {"uri": "https://openpai.example.com", "user": "vision-bot", "virtualCluster": "vision"},
    "trainyard:storage": {"name": "vision-nfs"},
    "trainyard:skus": {"VM.GPU.A10.1": {"gpus": 1, "cpus": 8, "memoryGb": 32}},
    "trainyard:registry": {"existing": "registry.example.com/vision/train"},
}


def _on_openpai(config: dict[str, Any]) -> None:
    config |= _OF_OPENPAI
    for key in ("trainyard:frameworks", "trainyard:network"):
        config.pop(key, None)
    for job in config["trainyard:jobs"].values():
        job["shape"] = "VM.GPU.A10.1"
        job.pop("inputs", None)


def _by(recorded: Any) -> dict[str, Any]:
    return {one.name: one.inputs for one in recorded.resources if one.type == "trainyard:index:Run"}


def test_the_same_stack_file_makes_jobs_of_openpai(changed: Written) -> None:
    recorded = changed("oci-pytorch-ddp", _on_openpai)
    runs = _by(recorded)
    assert runs
    for inputs in runs.values():
        job = {**inputs["protocol"], "name": "x"}
        assert inputs["cluster"] == _OF_OPENPAI["trainyard:cluster"]
        assert protocol_problems(job) == []
        for role in job["taskRoles"]:
            assert task_command(job, role).endswith('"$trainyard_python" -I -m launcher')
    assert {one.type for one in recorded.resources if one.custom} == {
        "trainyard:index:Run",
        "pulumi:providers:trainyard",
    }


def test_missing_keys_of_openpai_are_reported_for_a_file_of_another_platform(changed: Written) -> None:
    with pytest.raises(ProgramError, match="`trainyard:cluster` is missing"):
        changed("oci-pytorch-ddp", lambda config: config.update({"trainyard:platform": "openpai"}))
