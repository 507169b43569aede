# SPDX-License-Identifier: Apache-2.0
"""Differences between a deployed job and its stack file: the shape, or the share of a compute target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from components.oci.client.deployed import changes_since_deployment
from components.oci.client.job_runs import data_science_models
from components.oci.stack import ComputeTarget
from schemas.model import Shape
from tests.support.samples import job, own, plan

OF = data_science_models()
STANDALONE = OF.StandaloneJobInfrastructureConfigurationDetails(
    shape_name="VM.GPU.A10.1", block_storage_size_in_gbs=100, subnet_id="s"
)


def on_target(ocpus: float = 15, gpus: int | None = 1) -> Any:
    share = OF.ResourceRequestConfiguration(ocpus=ocpus, memory_in_gbs=240, gpus=gpus)
    return OF.ManagedComputeClusterJobInfrastructureConfigurationDetails(
        compute_target_id="ocid1.datasciencecomputetarget.oc1.iad.a",
        resource_configuration=OF.ManagedComputeClusterJobResourceConfiguration(resource_request_configuration=share),
    )


@pytest.mark.parametrize(
    ("target", "machine", "changed"),
    [
        ("pool", on_target(), []),
        ("pool", on_target(ocpus=4), ["shape"]),
        ("pool", on_target(gpus=None), ["shape"]),
        ("pool", STANDALONE, ["computeTarget", "blockStorageGb"]),
        (None, STANDALONE, []),
        (None, on_target(), ["computeTarget", "blockStorageGb"]),
    ],
)
def test_a_job_on_a_compute_target_is_compared_by_what_it_asks_for(
    target: str | None, machine: Any, changed: list[str]
) -> None:
    made = replace(own(job(roles={"main": 1})), compute_target=target)
    planned = plan(compute_targets={"pool": ComputeTarget(Shape("VM.GPU.A10.1"))}, jobs={"train": made}).jobs["train"]
    there = SimpleNamespace(
        job_node_configuration_details=None,
        job_configuration_details=OF.DefaultJobConfigurationDetails(maximum_runtime_in_minutes=1440),
        job_infrastructure_configuration_details=machine,
        job_environment_configuration_details=OF.OcirContainerJobEnvironmentConfigurationDetails(image=planned.image),
        job_storage_mount_configuration_details_list=[],
    )
    asked: Any = SimpleNamespace(job=planned, like=None)
    deployed: Any = SimpleNamespace(job=there, like=None)
    session: Any = None
    assert list(changes_since_deployment(session, asked, deployed, Path())) == changed
