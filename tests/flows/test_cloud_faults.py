# SPDX-License-Identifier: Apache-2.0
"""Injected faults, as the official SDK sees them."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import oci
import pytest
from click.testing import CliRunner

from localcloud import admin
from localcloud.control import Cloud, CloudError
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World, refusal
from tests.support.waiting import eventually
from trainyard.cli.cloud import cloud as command

core, identity = oci.core.models, oci.identity.models
# A delay that is longer than a test takes, and shorter than its timeout.
LONG, SHORT = 3600.0, 0.2


@pytest.fixture(scope="module")
def module_world(shared_cloud: Cloud) -> World:
    return World(Clients(shared_cloud))


@pytest.fixture
def world(module_world: World) -> Iterator[World]:
    yield module_world
    admin.clear_faults(module_world.clients.cloud)


def _vcn(world: World, **more: Any) -> Any:
    details = core.CreateVcnDetails(compartment_id=world.compartment, cidr_block="10.0.0.0/16", **more)
    return world.clients.network.create_vcn(details).data


def test_injected_latency_delays_the_response(world: World) -> None:
    admin.add_fault(world.clients.cloud, "latency", operations="ListVcns", seconds=0.2, times=1)
    begun = time.monotonic()
    world.clients.network.list_vcns(world.compartment)
    assert time.monotonic() - begun >= 0.2


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ({"status": 429}, (429, "TooManyRequests")),
        ({"status": 503}, (503, "ServiceUnavailable")),
        ({"status": 500, "code": "Mine"}, (500, "Mine")),
    ],
)
def test_an_injected_status_is_returned(world: World, asked: dict[str, Any], answer: tuple[int, str]) -> None:
    admin.add_fault(world.clients.cloud, "status", operations="List*", times=1, **asked)
    assert refusal(lambda: world.clients.network.list_vcns(world.compartment)) == answer
    assert world.clients.network.list_vcns(world.compartment).status == 200


def test_the_sdk_retries_injected_errors_that_are_retryable(world: World) -> None:
    admin.add_fault(world.clients.cloud, "status", operations="ListVcns", status=429, times=2)
    retry = oci.retry.RetryStrategyBuilder(
        retry_max_wait_between_calls_seconds=0, retry_base_sleep_time_seconds=0, max_attempts=3
    ).get_retry_strategy()
    assert world.clients.network.list_vcns(world.compartment, retry_strategy=retry).status == 200


def _lost(call: Callable[[], Any]) -> None:
    with pytest.raises((oci.exceptions.RequestException, oci.exceptions.ConnectTimeout)):
        call()


def test_a_dropped_call_has_no_effect(world: World) -> None:
    admin.add_fault(world.clients.cloud, "drop", operations="CreateVcn", times=1)
    _lost(lambda: _vcn(world, display_name="dropped"))
    assert world.clients.network.list_vcns(world.compartment, display_name="dropped").data == []


def test_a_call_with_a_lost_response_took_effect_and_a_retry_token_finds_it(world: World) -> None:
    admin.add_fault(world.clients.cloud, "lost-answer", operations="CreateVcn", times=1)
    details = core.CreateVcnDetails(compartment_id=world.compartment, cidr_block="10.0.0.0/16", display_name="lost")
    create = world.clients.network.create_vcn
    _lost(lambda: create(details, opc_retry_token="again"))
    made = create(details, opc_retry_token="again").data.id
    assert [vcn.id for vcn in world.clients.network.list_vcns(world.compartment, display_name="lost").data] == [made]


def test_an_injected_limit_refuses_further_resources(world: World) -> None:
    client = oci.limits.LimitsClient(
        oci.config.from_file(str(world.clients.cloud.config_file)), service_endpoint=world.clients.cloud.endpoint
    )
    tenancy = world.clients.cloud.tenancy
    assert "vcn" in [service.name for service in client.list_services(tenancy).data]
    used = client.get_resource_availability("vcn", "vcn-count", tenancy).data.used
    admin.add_fault(world.clients.cloud, "limit", limit="vcn-count", value=used + 1)
    assert client.list_limit_values(tenancy, "vcn", name="vcn-count").data[0].value == used + 1
    assert client.get_resource_availability("vcn", "vcn-count", tenancy).data.available == 1
    _vcn(world)
    assert refusal(lambda: _vcn(world)) == (400, "LimitExceeded")
    definitions = client.list_limit_definitions(tenancy, service_name="vcn", limit=1)
    assert (len(definitions.data), bool(definitions.next_page)) == (1, True)


def test_runs_of_a_shape_without_capacity_fail(world: World) -> None:
    job = world.job("print('ran')")
    admin.add_fault(world.clients.cloud, "no-capacity", shape="VM.GPU*")
    assert world.finished(world.run(job)).lifecycle_state == "SUCCEEDED"
    admin.add_fault(world.clients.cloud, "no-capacity", shape="VM.Standard2.1", times=1)
    assert refusal(lambda: world.run(job)) == (500, "InternalError")
    world.finished(world.run(job))


_FILLS = """
import errno
written = 0
try:
    with open("file", "wb", buffering=0) as file:
        while written < 64 << 20:
            written += file.write(bytes(1 << 20))
except OSError as error:
    print(errno.errorcode[error.errno], "at 8 MiB" if 7 << 20 <= written <= 8 << 20 else written)
"""


def test_a_small_disk_is_full_at_its_size(world: World) -> None:
    admin.add_fault(world.clients.cloud, "disk", value=8, times=1)
    run = world.run(world.job(_FILLS))
    assert world.finished(run).lifecycle_state == "SUCCEEDED"
    world.printed(run, "ENOSPC at 8 MiB")


def test_nodes_count_against_the_limit_of_their_shape(world: World) -> None:
    job = world.job("import time; time.sleep(600)")
    admin.add_fault(world.clients.cloud, "limit", limit="ds-vm-standard2-1-count", value=1, code="QuotaExceeded")
    run = world.run(job)
    assert refusal(lambda: world.run(job)) == (400, "QuotaExceeded")
    world.clients.data_science.cancel_job_run(run.id)
    world.finished(run)
    again = world.run(job)
    world.clients.data_science.cancel_job_run(again.id)
    world.finished(again)


def test_a_slowed_transition_takes_the_injected_time(world: World) -> None:
    client = world.clients.network
    old = _vcn(world)
    admin.add_fault(world.clients.cloud, "transition", operations="*Vcn", seconds=LONG)
    made = _vcn(world)
    assert (made.lifecycle_state, client.get_vcn(made.id).data.lifecycle_state) == ("PROVISIONING", "PROVISIONING")
    assert made.id in [vcn.id for vcn in client.list_vcns(world.compartment, lifecycle_state="PROVISIONING").data]
    assert refusal(lambda: client.delete_vcn(made.id)) == (409, "IncorrectState")
    client.delete_vcn(old.id)
    assert client.get_vcn(old.id).data.lifecycle_state == "TERMINATING"


def test_a_slowed_transition_ends(world: World) -> None:
    client = world.clients.network
    admin.add_fault(world.clients.cloud, "transition", operations="*Vcn", seconds=SHORT)
    made = _vcn(world)
    eventually(lambda: client.get_vcn(made.id).data.lifecycle_state, lambda state: state == "AVAILABLE")
    client.delete_vcn(made.id)
    eventually(lambda: client.get_vcn(made.id).data.lifecycle_state, lambda state: state == "TERMINATED")


def test_a_work_request_ends_when_its_resource_has_settled(world: World) -> None:
    client = world.clients.logging

    def asked(name: str, seconds: float) -> str:
        admin.clear_faults(world.clients.cloud)
        admin.add_fault(world.clients.cloud, "transition", operations="CreateLogGroup", seconds=seconds)
        details = oci.logging.models.CreateLogGroupDetails(compartment_id=world.compartment, display_name=name)
        return str(client.create_log_group(details).headers["opc-work-request-id"])

    slow, soon = asked("slow", LONG), asked("soon", SHORT)
    eventually(lambda: client.get_work_request(soon).data.status, lambda status: status == "SUCCEEDED")
    assert client.get_work_request(slow).data.status == "IN_PROGRESS"


def test_a_delayed_policy_takes_effect_late(world: World) -> None:
    user = Clients(world.clients.cloud, "user").network
    tenancy = world.clients.cloud.tenancy
    details = identity.CreatePolicyDetails(
        compartment_id=tenancy, name="late", description="late",
        statements=["allow group scientists to read vcns in tenancy"],
    )  # fmt: skip

    def late(seconds: float) -> None:
        admin.clear_faults(world.clients.cloud)
        admin.add_fault(world.clients.cloud, "access", operations="*Policy", seconds=seconds)

    def allowed() -> bool:
        try:
            return bool(user.list_vcns(world.compartment).status == 200)
        except oci.exceptions.ServiceError as error:
            if error.code != "NotAuthorizedOrNotFound":
                raise
            return False

    late(LONG)
    policy = world.clients.identity.create_policy(details).data.id
    assert not allowed()
    world.clients.identity.delete_policy(policy)
    late(SHORT)
    policy = world.clients.identity.create_policy(details).data.id
    eventually(allowed, bool)
    less = identity.UpdatePolicyDetails(statements=["allow group scientists to read subnets in tenancy"])
    late(LONG)
    world.clients.identity.update_policy(policy, less)
    assert allowed(), "what was taken away counts until that is in force"
    world.clients.identity.delete_policy(policy)
    assert not allowed()


def test_a_deleted_policy_stays_in_force_for_a_while(world: World) -> None:
    user = Clients(world.clients.cloud, "user").network
    statements = ["allow group scientists to read vcns in tenancy"]
    details = identity.CreatePolicyDetails(
        compartment_id=world.clients.cloud.tenancy, name="ends", description="ends", statements=statements
    )
    policy = world.clients.identity.create_policy(details).data.id
    user.list_vcns(world.compartment)
    admin.add_fault(world.clients.cloud, "access", operations="*Policy", seconds=SHORT)
    less = identity.UpdatePolicyDetails(statements=["allow group scientists to read subnets in tenancy"])
    world.clients.identity.update_policy(policy, less)

    def refused() -> bool:
        try:
            user.list_vcns(world.compartment)
        except oci.exceptions.ServiceError:
            return True
        return False

    eventually(refused, bool)
    world.clients.identity.delete_policy(policy)


def test_only_administrators_may_inject_faults(world: World) -> None:
    user = Clients(world.clients.cloud, "user").network
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        user.base_client.call_api(resource_path="/../.trainyard/faults", method="GET", header_params={})
    assert refused.value.status == 404


def test_an_invalid_fault_is_refused_with_an_explanation(world: World) -> None:
    cloud = world.clients.cloud
    for ask in (
        lambda: admin.add_fault(cloud, "flood"),
        lambda: admin.clear_faults(cloud, "none"),
        lambda: admin.add_fault(cloud, "latency"),
    ):
        with pytest.raises(CloudError):
            ask()


def test_the_faults_command_adds_lists_and_clears_faults(world: World) -> None:
    home = ["--home", str(world.clients.cloud.home)]
    invoke: Callable[..., Any] = CliRunner().invoke
    refused = invoke(command, ["faults", "add", "latency", *home])
    assert (refused.exit_code, "needs seconds" in refused.output) == (1, True)
    added = invoke(command, ["faults", "add", "status", "--status", "429", "--operations", "ListVcns", *home])
    assert "Added: status, operations ListVcns" in added.output
    assert refusal(lambda: world.clients.network.list_vcns(world.compartment)) == (429, "TooManyRequests")
    assert "struck 1 of 1 calls" in invoke(command, ["faults", "list", *home]).output
    assert invoke(command, ["faults", "clear", *home]).output == "Ended 1 fault.\n"
    assert "No faults are set." in invoke(command, ["faults", "list", *home]).output
