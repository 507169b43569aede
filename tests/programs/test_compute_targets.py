# SPDX-License-Identifier: Apache-2.0
"""Compute targets, created or looked up, and jobs that request resources of them for each node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.programs.conftest import Record, Written
from tests.support.recorder.client import Recording

Config = dict[str, Any]
THERE = "ocid1.datasciencecomputetarget.oc1.iad.amaavision"
FLEX = {"name": "VM.Standard.E4.Flex", "ocpus": 2, "memoryGb": 32}


def on(target: Config, **keys: Any) -> Callable[[Config], None]:
    """The example with its job on a target, and further keys of the job."""

    def change(config: Config) -> None:
        (job,) = config["trainyard:jobs"].values()
        job.pop("blockStorageGb", None)
        job |= {"computeTarget": "pool", **keys}
        config["trainyard:computeTargets"] = {"pool": target}

    return change


def job_of(recording: Recording) -> Config:
    (job,) = recording.of("Job").values()
    return dict(job.inputs)


def test_node_groups_name_the_target_and_keep_the_jobs_subnet(changed: Written) -> None:
    pool = {"shape": {**FLEX, "ocpus": 8, "memoryGb": 128}, "instances": 4, "bootVolumeGb": 200}
    recording = changed("oci-pytorch-ddp", on(pool, shape=FLEX, layout="node-groups", options={"backend": "gloo"}))
    (target,) = recording.of("ComputeTarget").values()
    assert target.inputs["computeConfigurationDetails"] == {
        "computeType": "MANAGED_COMPUTE_CLUSTER",
        "instanceConfiguration": {
            "instanceShape": FLEX["name"],
            "bootVolumeSizeInGbs": 200,
            "instanceShapeDetails": {"ocpus": 8, "memoryInGbs": 128},
        },
        "scalingPolicy": {"policyType": "FIXED_SIZE", "instanceCount": 4},
    }
    assert set(target.inputs["freeformTags"]) >= {"stack", "team", "environment"}
    made = recording.exports["computeTargetIds"]["pool"]
    layout = job_of(recording)["jobNodeConfigurationDetails"]
    assert layout["jobNetworkConfiguration"]["subnetId"] == recording.exports["subnetId"]
    for group in layout["jobNodeGroupConfigurationDetailsLists"]:
        assert group["jobInfrastructureConfigurationDetails"] == {
            "jobInfrastructureType": "MANAGED_COMPUTE_CLUSTER",
            "computeTargetId": made,
            "resourceConfiguration": {"resourceRequestConfiguration": {"ocpus": 2, "memoryInGbs": 32}},
        }


def test_one_node_on_an_existing_target_takes_a_whole_machine(changed: Written) -> None:
    recording = changed("oci-pytorch-ddp", on({"existing": THERE}, shape="VM.GPU.A10.2", roles={"main": 1}))
    assert not recording.of("ComputeTarget")
    assert "oci:DataScience/getComputeTarget:getComputeTarget" in {asked["function"] for asked in recording.invokes}
    assert job_of(recording)["jobInfrastructureConfigurationDetails"] == {
        "jobInfrastructureType": "MANAGED_COMPUTE_CLUSTER",
        "computeTargetId": THERE,
        "resourceConfiguration": {"resourceRequestConfiguration": {"ocpus": 30, "memoryInGbs": 480, "gpus": 2}},
    }


def test_a_stack_without_targets_is_unchanged(record: Record) -> None:
    recording = record("oci-pytorch-ddp")
    assert not recording.of("ComputeTarget")
    assert "computeTargetIds" not in recording.exports
