# SPDX-License-Identifier: Apache-2.0
"""What OCI would not take of a job or of a run makes none here either."""

from typing import Any

import oci
import pytest

from tests.support.cloud_world import World

MODELS = oci.data_science.models


TOO_MUCH: dict[str, dict[str, Any]] = {
    "environment": {"environment_variables": {"LONG": "x" * 19_000, "MORE": "y" * 1_000}},
    "arguments": {"command_line_arguments": "x" * 4_001},
}


def _groups(configuration: Any) -> Any:
    return MODELS.MultiNodeJobNodeConfigurationDetails(
        job_node_group_configuration_details_list=[
            MODELS.JobNodeGroupConfigurationDetails(name="nodes", replicas=1, job_configuration_details=configuration)
        ]
    )


@pytest.mark.parametrize("which", TOO_MUCH)
def test_more_environment_or_arguments_than_oci_takes(world: World, which: str) -> None:
    configuration = MODELS.DefaultJobConfigurationDetails(**TOO_MUCH[which])
    job = world.job("pass")
    for refused in (
        lambda: world.job("pass", job_configuration_details=configuration),
        lambda: world.job("pass", job_node_configuration_details=_groups(configuration)),
        lambda: world.run(job, job_configuration_override_details=configuration),
        lambda: world.run(job, job_node_configuration_override_details=_groups(configuration)),
    ):
        with pytest.raises(oci.exceptions.ServiceError, match="characters") as answer:
            refused()
        assert (answer.value.status, answer.value.code) == (400, "InvalidParameter")
