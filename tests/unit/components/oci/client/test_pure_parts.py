# SPDX-License-Identifier: Apache-2.0
"""Addresses, endpoints, requests and refusals, without a cloud."""

import re
import threading
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from oci.exceptions import RequestException, ServiceError

from components.oci.client import calls, job_runs
from components.oci.client import registry as images
from components.oci.client.calls import call_oci, make_once, oci_error_text
from components.oci.client.session import Session, host_overrides
from components.platform.calls import Call, Cancelled, ProviderError, Stop
from components.platform.inputs import with_defaults
from components.platform.runs import LAUNCH_VARIABLE, run_spec
from components.platform.values import reveal_secrets
from provider.base.wire import Engine, UrnReporter


def _call() -> Call:
    return Call("urn", "t", "n", UrnReporter(Engine(), "urn", frozenset()), Stop())


def _refused(status: int, code: str, message: str = "no") -> ServiceError:
    return ServiceError(status, code, {"opc-request-id": "R"}, message)


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("iad.ocir.io/ns/vision/dt:1.4", ("iad", "ns", "vision/dt", "1.4", None)),
        ("us-ashburn-1.ocir.io/ns/dt", ("us-ashburn-1", "ns", "dt", None, None)),
        ("ocir.us-ashburn-1.oci.oraclecloud.com/ns/dt:1", ("us-ashburn-1", "ns", "dt", "1", None)),
        (f"iad.ocir.io/ns/dt@sha256:{'a' * 64}", ("iad", "ns", "dt", None, f"sha256:{'a' * 64}")),
        (f"iad.ocir.io/ns/dt:1@sha256:{'a' * 64}", ("iad", "ns", "dt", "1", f"sha256:{'a' * 64}")),
    ],
)
def test_image_addresses(address: str, parts: tuple[str | None, ...]) -> None:
    image = images.parse_address(address)
    assert image is not None
    assert (image.region, image.namespace, image.repository, image.tag, image.digest) == parts


@pytest.mark.parametrize("address", ["docker.io/library/python:3", "python", "ghcr.io/a/b:1", "iad.ocir.io/x"])
def test_other_registries_are_not_asked(address: str) -> None:
    assert images.parse_address(address) is None


def test_overrides_are_found_by_client() -> None:
    text = "oci_core.VirtualNetworkClient=http://127.0.0.1:1/; oci_identity.IdentityClient=https://x ;"
    assert host_overrides({"CLIENT_HOST_OVERRIDES": text}) == {
        "VirtualNetworkClient": "http://127.0.0.1:1",
        "IdentityClient": "https://x",
    }
    assert host_overrides({}) == {}


@pytest.mark.parametrize("text", ["nonsense", "a.B=ftp://x", "a.B="])
def test_a_bad_override_is_said(text: str) -> None:
    with pytest.raises(ProviderError, match="not an endpoint"):
        host_overrides({"CLIENT_HOST_OVERRIDES": text})


def test_missing_credentials_are_said_with_file_and_profile(tmp_path: Any) -> None:
    session = Session.of({"profile": "p", "configFile": str(tmp_path / "none")}, {})
    with pytest.raises(ProviderError, match=r"profile `p` of .*none"):
        _ = session.credentials


def test_configuration_wins_over_the_environment() -> None:
    variables = {"OCI_CONFIG_PROFILE": "env", "OCI_CONFIG_FILE": "/env"}
    assert Session.of({"profile": "own"}, variables).profile == "own"
    assert Session.of({"profile": "own"}, variables).config_file == "/env"


def test_a_busy_cloud_is_asked_again() -> None:
    answers = iter([_refused(429, "TooManyRequests"), _refused(503, "ServiceUnavailable")])

    def operation() -> str:
        for error in answers:
            raise error
        return "done"

    assert call_oci(_call(), "Do it", operation) == "done"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (_refused(404, "NotAuthorizedOrNotFound"), "trainyard access"),
        (_refused(400, "LimitExceeded"), "service limit"),
        (_refused(500, "InternalError", "Out of host capacity"), "no free machine"),
        (_refused(409, "IncorrectState"), "409 IncorrectState"),
    ],
)
def test_a_refusal_is_cause_and_remedy_at_once(error: ServiceError, says: str) -> None:
    def operation() -> None:
        raise error

    with pytest.raises(ProviderError, match=says) as refused:
        call_oci(_call(), "Do it", operation)
    assert str(refused.value).startswith(f"Do it: {error.status} {error.code}")
    assert "opc-request-id R" in str(refused.value)


def test_a_lost_connection_is_one_short_line() -> None:
    wrapped = RequestException(RequestException("Connection aborted", "Request Endpoint: GET … contact support"))
    assert oci_error_text(wrapped) == "no answer: Connection aborted"
    assert oci_error_text(ConnectionError()) == "no answer: the connection failed"


def test_a_bug_is_not_dressed_up() -> None:
    with pytest.raises(KeyError):
        call_oci(_call(), "Do it", lambda: dict[str, str]()["missing"])


def test_cancel_ends_the_wait_for_access() -> None:
    call = _call()
    threading.Timer(0.2, call.stop.ask).start()

    def operation() -> None:
        raise _refused(404, "NotAuthorizedOrNotFound")

    with pytest.raises(Cancelled):
        call_oci(call, "Do it", operation, access_minutes=1)


def test_a_token_whose_result_is_gone_gives_way_to_the_next() -> None:
    tokens: list[str] = []

    def create(token: str) -> str | None:
        tokens.append(token)
        if len(tokens) == 1:
            raise _refused(409, "InvalidatedRetryToken")
        return "made" if len(tokens) == 3 else None

    assert make_once(_call(), "Make it", "identity", create) == "made"
    assert len(set(tokens)) == 3
    again: list[str] = []

    def create_at_once(token: str) -> str:
        again.append(token)
        return "made"

    make_once(_call(), "Make it", "identity", create_at_once)
    assert again == tokens[:1]


def _described(**more: Any) -> tuple[Any, Any]:
    node = {"name": "worker-0", "role": "worker", "rank": 1, "environment": {"A": "1"}, "arguments": ["--x", "a b"]}
    main = {"name": "main", "role": "main", "rank": 0, "arguments": ["--y"]}
    inputs = {
        "platform": "oci",
        "job": "j",
        "project": "p",
        "compartment": "c",
        "displayName": "run",
        "tags": {"team": "vision"},
        "nodes": [main, node],
        "image": "iad.ocir.io/ns/dt:1",
        "maximumRuntimeMinutes": 30,
        "logGroup": "g",
        "log": "l",
        **more,
    }
    checked = with_defaults(inputs)
    return checked, run_spec("urn", checked)


def _job(**environment: Any) -> Any:
    return SimpleNamespace(
        job_environment_configuration_details=SimpleNamespace(**environment) if environment else None,
        job_node_configuration_details=None,
    )


def _as_run(details: Any, number: int) -> Any:
    """The job run that OCI would show for this request."""
    fields = {name: getattr(details, name) for name in details.swagger_types}
    return SimpleNamespace(id=f"run{number}", **fields)


def test_a_run_reads_back_as_the_inputs_that_made_it() -> None:
    inputs, spec = _described()
    requests = [
        job_runs.job_run_request(spec, node, _job(), "", f"{rank}" if rank else None)
        for rank, node in enumerate(spec.nodes)
    ]
    back = with_defaults(job_runs.inputs_of_job_runs([_as_run(one, number) for number, one in enumerate(requests)]))
    nodes = [{**node, "environment": node.get("environment", {})} for node in inputs["nodes"]]
    assert reveal_secrets(back) == {**inputs, "nodes": nodes}


def test_node_groups_read_back_as_the_inputs_that_made_them() -> None:
    groups = [
        {"name": "main", "replicas": 1, "environment": {}},
        {"name": "worker", "replicas": 3, "minimumSuccess": 2},
    ]
    _, spec = _described(nodes=groups, layout="node-groups", image=None)
    back = job_runs.inputs_of_job_runs([_as_run(job_runs.job_run_request(spec, None, _job(), ""), 0)])
    assert reveal_secrets(back)["nodes"] == [{**group, "environment": {}} for group in groups]
    assert back["maximumRuntimeMinutes"] == 30
    assert back["layout"] == "node-groups"


def test_an_override_of_node_groups_says_all_that_the_job_said() -> None:
    """The override replaces the job's settings, so it has to repeat image and network (a rehearsal found this)."""
    environment, infrastructure = SimpleNamespace(image="iad.ocir.io/ns/dt:1"), SimpleNamespace(shape_name="VM")
    group = SimpleNamespace(
        name="main",
        job_environment_configuration_details=environment,
        job_infrastructure_configuration_details=infrastructure,
    )
    network = SimpleNamespace(subnet_id="s")
    job = SimpleNamespace(
        job_node_configuration_details=SimpleNamespace(
            job_node_group_configuration_details_list=[group], job_network_configuration=network,
            startup_order="IN_ORDER",
        )
    )  # fmt: skip
    _, spec = _described(nodes=[{"name": "main", "replicas": 2}], layout="node-groups")
    override = job_runs.job_run_request(spec, None, job, "").job_node_configuration_override_details
    (told,) = override.job_node_group_configuration_details_list
    assert (override.job_network_configuration, override.startup_order) == (network, "IN_ORDER")
    assert told.job_environment_configuration_details is environment
    assert told.job_infrastructure_configuration_details is infrastructure
    assert told.replicas == 2


def test_only_the_others_are_told_of_the_main_node() -> None:
    _, spec = _described()
    main, worker = (
        job_runs.job_run_request(spec, node, _job(), "", known)
        for node, known in zip(spec.nodes, (None, "M"), strict=True)
    )
    assert main.job_configuration_override_details.environment_variables is None
    assert worker.job_configuration_override_details.environment_variables == {"A": "1", "MAIN_JOB_RUN_OCID": "M"}
    assert (main.display_name, worker.display_name) == ("run-main", "run-worker-0")


@pytest.mark.parametrize("layout", ["run-per-node", "node-groups"])
def test_the_launcher_is_told_the_maximum_runtime_and_what_is_expected_and_nobody_else(layout: str) -> None:
    nodes = [{"name": "main", "environment": {LAUNCH_VARIABLE: "{}"}}, {"name": "worker"}]
    _, spec = _described(nodes=nodes, layout=layout, expects={"version": 1})
    groups = [None] if layout == "node-groups" else list(spec.nodes)
    requests = [job_runs.job_run_request(spec, node, _job(), "") for node in groups]
    whole = requests[0].job_node_configuration_override_details
    told = whole.job_node_group_configuration_details_list if whole else requests
    given = [
        (
            getattr(one, "job_configuration_details", None) or one.job_configuration_override_details
        ).environment_variables
        for one in told
    ]
    ours = {job_runs.MAXIMUM_VARIABLE: "30", job_runs.EXPECTS_VARIABLE: '{"version": 1}'}
    assert given == [{LAUNCH_VARIABLE: "{}", **ours}, None]
    back = job_runs.inputs_of_job_runs([_as_run(one, number) for number, one in enumerate(requests)])
    assert reveal_secrets(back)["nodes"][0]["environment"] == {LAUNCH_VARIABLE: "{}"}


@pytest.mark.parametrize(
    ("uri", "parts"),
    [("oci://b@ns/job/run/1", ("ns", "b", "job/run/1")), ("oci://b@ns", None), ("${bucket}/x", None), (None, None)],
)
def test_a_folder_is_a_place_in_a_bucket(uri: str | None, parts: Any) -> None:
    assert calls.parse_bucket_folder(uri) == parts


@pytest.mark.parametrize("layout", ["run-per-node", "node-groups"])
def test_images_of_ads_find_a_place_that_is_their_start_s_own(layout: str) -> None:
    """Files of an earlier start in the same folder, such as `stop`, would end the nodes at once. The stack's inputs do
    not change."""
    place = {"OCI__WORK_DIR": "oci://b@ns/job/run/1"}
    nodes = [{"name": name, "environment": place, "replicas": 1} for name in ("main", "worker")]
    _, spec = _described(nodes=nodes, layout=layout, image=None)

    def made(token: str) -> list[Any]:
        work = job_runs.work_of(token)
        if layout == "node-groups":
            return [_as_run(job_runs.job_run_request(spec, None, _job(), work), 0)]
        main = _as_run(job_runs.job_run_request(spec, spec.nodes[0], _job(), work), 0)
        return [main, _as_run(job_runs.job_run_request(spec, spec.nodes[1], _job(), job_runs.work_in(main), "run0"), 1)]

    def places(runs: list[Any]) -> set[str]:
        texts = re.findall(r"oci://[^'\"]+", " ".join(f"{vars(run)}" for run in runs))
        return {text for text in texts if "/job/run/1" in text}

    first, second = made("a" * 40), made("b" * 40)
    assert (len(places(first)), len(places(second))) == (1, 1)
    assert places(first) != places(second)
    assert places(first) != {place["OCI__WORK_DIR"]}
    described = reveal_secrets(job_runs.inputs_of_job_runs(first))["nodes"]
    assert [node["environment"] for node in described] == [place, place]


def test_a_place_of_ads_that_an_earlier_release_made_is_kept_by_nodes_added_to_it() -> None:
    _, spec = _described(nodes=[{"name": "main", "environment": {"OCI__WORK_DIR": "oci://b@ns/x"}}, {"name": "worker"}])
    main = _as_run(job_runs.job_run_request(spec, spec.nodes[0], _job(), ""), 0)
    assert job_runs.work_in(main) == ""
    elsewhere = _described(nodes=[{"name": "main", "environment": {"OCI__WORK_DIR": "/mnt/work"}}])[1]
    told = job_runs.job_run_request(
        elsewhere, elsewhere.nodes[0], _job(), "/start-0"
    ).job_configuration_override_details
    assert told.environment_variables == {"OCI__WORK_DIR": "/mnt/work"}


def test_an_image_override_keeps_the_job_s_command() -> None:
    _, spec = _described()
    job = _job(image="iad.ocir.io/ns/dt:0", cmd=["train"], entrypoint=["python"])
    override = job_runs.job_run_request(spec, spec.nodes[0], job, "").job_environment_configuration_override_details
    assert (override.image, override.cmd, override.entrypoint) == ("iad.ocir.io/ns/dt:1", ["train"], ["python"])
    same = _job(image="iad.ocir.io/ns/dt:1")
    assert (
        job_runs.job_run_request(spec, spec.nodes[0], same, "").job_environment_configuration_override_details is None
    )


def test_a_reservation_keeps_the_job_s_machine_and_reads_back() -> None:
    machine = job_runs.data_science_models().StandaloneJobInfrastructureConfigurationDetails(
        shape_name="VM.GPU.A10.1", subnet_id="s", block_storage_size_in_gbs=100
    )
    job = _job()
    job.job_infrastructure_configuration_details = machine
    inputs, spec = _described(capacityReservation="ocid1.capacityreservation.oc1.iad.a")
    requests = [job_runs.job_run_request(spec, node, job, "") for node in spec.nodes]
    for made in (one.job_infrastructure_configuration_override_details for one in requests):
        assert (made.job_infrastructure_type, made.shape_name, made.subnet_id) == ("STANDALONE", "VM.GPU.A10.1", "s")
        assert (made.block_storage_size_in_gbs, made.capacity_reservation_id) == (100, inputs["capacityReservation"])
    back = job_runs.inputs_of_job_runs([_as_run(one, number) for number, one in enumerate(requests)])
    assert back["capacityReservation"] == inputs["capacityReservation"]
    assert machine.capacity_reservation_id is None


def test_times_sort_as_the_moments_do() -> None:
    second = datetime(2026, 11, 22, 11, 30, 48, tzinfo=UTC)
    run = SimpleNamespace(
        id="ocid1.run", lifecycle_state="SUCCEEDED", lifecycle_details=None,
        time_started=second, time_finished=second.replace(microsecond=192000),
    )  # fmt: skip
    node = job_runs.node_of_job_run(run, "main")
    assert node.started_at is not None
    assert node.finished_at is not None
    assert node.started_at < node.finished_at
