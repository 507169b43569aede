# SPDX-License-Identifier: Apache-2.0
"""Jobs and runs that OCI refuses are refused here too."""

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
def test_environment_and_arguments_beyond_ocis_limits_are_refused(world: World, which: str) -> None:
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


def _cluster(**scaling: Any) -> Any:
    policy = MODELS.ManagedComputeClusterFixedSizeScalingPolicy(instance_count=2)
    machine = MODELS.ManagedComputeClusterInstanceConfigurationDetails(instance_shape="VM.Standard2.1")
    given = {"instance_configuration": machine, "scaling_policy": policy, **scaling}
    return MODELS.ManagedComputeClusterComputeConfigurationDetails(**given)


def _on(target: str) -> Any:
    share = MODELS.ResourceRequestConfiguration(ocpus=1, memory_in_gbs=2)
    return MODELS.ManagedComputeClusterJobInfrastructureConfigurationDetails(
        compute_target_id=target,
        resource_configuration=MODELS.ManagedComputeClusterJobResourceConfiguration(
            resource_request_configuration=share
        ),
    )


def test_a_compute_target_is_made_changed_and_deleted_by_work_requests(world: World) -> None:
    client = world.clients.data_science

    def done(answer: Any) -> tuple[str, str, str]:
        request = client.get_work_request(answer.headers["opc-work-request-id"]).data
        (about,) = request.resources
        assert request.status == "SUCCEEDED"
        return request.operation_type, about.action_type, about.entity_type

    details = MODELS.CreateComputeTargetDetails(
        compartment_id=world.compartment, display_name="pool", compute_configuration_details=_cluster()
    )
    answer = client.create_compute_target(details)
    target = answer.data.id
    assert target.startswith("ocid1.datasciencecomputetarget.")
    assert done(answer) == ("COMPUTE_TARGET_CREATE", "CREATED", "compute-target")
    assert [one.id for one in client.list_compute_targets(world.compartment, display_name="pool").data] == [target]
    bigger = MODELS.UpdateManagedComputeClusterConfigurationDetails(
        scaling_policy=MODELS.ManagedComputeClusterFixedSizeScalingPolicy(instance_count=3)
    )
    changed = MODELS.UpdateComputeTargetDetails(compute_configuration_details=bigger)
    assert done(client.update_compute_target(target, changed)) == ("COMPUTE_TARGET_UPDATE", "UPDATED", "compute-target")
    now = client.get_compute_target(target).data
    assert now.compute_configuration_details.instance_configuration.instance_shape == "VM.Standard2.1"
    assert now.compute_target_system_data.current_instance_count == 3
    job = world.job("pass", job_infrastructure_configuration_details=_on(target))
    with pytest.raises(oci.exceptions.ServiceError, match="in use by") as held:
        client.delete_compute_target(target)
    assert held.value.status == 409
    client.delete_job(job)
    assert done(client.delete_compute_target(target)) == ("COMPUTE_TARGET_DELETE", "DELETED", "compute-target")
    assert client.get_compute_target(target).data.lifecycle_state == "DELETED"
    for refused in (_on(target), _on("ocid1.datasciencecomputetarget.oc1.iad.none")):
        with pytest.raises(oci.exceptions.ServiceError) as answer:
            world.job("pass", job_infrastructure_configuration_details=refused)
        assert answer.value.status == 400


def test_a_run_on_a_compute_target_is_in_no_subnet(world: World) -> None:
    client = world.clients.data_science
    details = MODELS.CreateComputeTargetDetails(
        compartment_id=world.compartment, compute_configuration_details=_cluster()
    )
    target = client.create_compute_target(details).data.id
    run = world.finished(world.run(world.job("print('here')", job_infrastructure_configuration_details=_on(target))))
    assert run.lifecycle_state == "SUCCEEDED", run.lifecycle_details
    machine = run.job_infrastructure_configuration_details
    assert (machine.job_infrastructure_type, machine.compute_target_id) == ("MANAGED_COMPUTE_CLUSTER", target)
    # A run may override that: for another type of machine, the job's settings do not apply.
    own = MODELS.ManagedEgressStandaloneJobInfrastructureConfigurationDetails(
        shape_name="VM.Standard2.1", block_storage_size_in_gbs=50
    )
    other = world.run(run.job_id, job_infrastructure_configuration_override_details=own)
    assert world.read(other).job_infrastructure_configuration_details.shape_name == "VM.Standard2.1"
    world.finished(other)
