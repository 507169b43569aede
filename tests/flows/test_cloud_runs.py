# SPDX-License-Identifier: Apache-2.0
"""Job runs on the local cloud are real processes, with OCI's states, environment and logs."""

import io
import json
import tarfile
import tempfile
import zipfile
from pathlib import Path

import oci
import pytest

from localcloud import admin, files
from tests.support import traces
from tests.support.cloud_world import World, variables
from tests.support.shadows import write_shadows
from tests.support.waiting import eventually

REGISTRY = "iad.ocir.io/trainyardlocal"


def test_a_run_runs_and_its_output_is_read_back(world: World) -> None:
    script = "import os, sys; print('I am', os.environ['JOB_RUN_OCID']); print(os.environ['TEAM'], file=sys.stderr)"
    run = world.run(world.job(script, variables={"TEAM": "vision"}))
    assert run.lifecycle_state == "ACCEPTED"
    done = world.finished(run)
    assert (done.lifecycle_state, done.lifecycle_details) == ("SUCCEEDED", "")
    assert done.time_accepted <= done.time_started <= done.time_finished
    assert world.lines(run) == [f"I am {run.id}", "vision"]


def test_variables_of_the_run_override_the_jobs_and_ocis_override_both(world: World) -> None:
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    job = world.job(script, variables={"A": "job", "B": "job", "JOB_OCID": "forged"})
    run = world.run(job, **variables(B="run"))
    world.finished(run)
    seen = json.loads(world.lines(run)[0])
    assert (seen["A"], seen["B"], seen["JOB_OCID"], seen["PROJECT_OCID"]) == ("job", "run", job, world.project)
    assert "OCI_CONFIG_FILE" not in seen, "the deployer's credentials must not reach a run"


def test_arguments_come_from_the_job_or_the_run(world: World) -> None:
    models = oci.data_science.models
    job = world.job("import sys; print(sys.argv[1:])")
    overrides = models.DefaultJobConfigurationDetails(command_line_arguments="--lr 0.1 'two words'")
    run = world.run(job, job_configuration_override_details=overrides)
    world.finished(run)
    assert world.lines(run) == ["['--lr', '0.1', 'two words']"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("raise SystemExit(3)", "exited with code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV"),
    ],
)
def test_a_failed_run_has_its_exit_code(world: World, script: str, reason: str) -> None:
    done = world.finished(world.run(world.job(script)))
    assert done.lifecycle_state == "FAILED"
    assert reason in done.lifecycle_details


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("code/main.py", "import helper; print(helper.WORD)")
        archive.writestr("code/helper.py", "WORD = 'unpacked'")
    return buffer.getvalue()


def _tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        content = b"echo unpacked"
        item = tarfile.TarInfo("code/main.sh")
        item.size = len(content)
        archive.addfile(item, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "name", "entrypoint"), [(_zip(), "code.zip", "code/main.py"), (_tar(), "code.tar.gz", "code/main.sh")]
)
def test_an_archive_is_unpacked_and_its_entrypoint_started(
    world: World, content: bytes, name: str, entrypoint: str
) -> None:
    job = world.job()
    world.upload(job, content, name)
    run = world.run(job, **variables(JOB_RUN_ENTRYPOINT=entrypoint))
    assert world.finished(run).lifecycle_state == "SUCCEEDED"
    assert world.lines(run) == ["unpacked"]


def test_an_archive_with_paths_outside_of_it_is_refused(world: World) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../../escaped"))
    job = world.job()
    world.upload(job, buffer.getvalue(), "code.tar")
    done = world.finished(world.run(job, **variables(JOB_RUN_ENTRYPOINT="escaped")))
    assert (done.lifecycle_state, "cannot be unpacked" in done.lifecycle_details) == ("FAILED", True)


def _container(image: str, **more: object) -> object:
    return oci.data_science.models.OcirContainerJobEnvironmentConfigurationDetails(image=image, **more)


def _may_pull(world: World) -> None:
    """Access as a stack gives it to its runs."""
    client, tenancy, models = world.clients.identity, world.clients.cloud.tenancy, oci.identity.models
    rule = f"all {{resource.type = 'datasciencejobrun', resource.compartment.id = '{world.compartment}'}}"
    group = models.CreateDynamicGroupDetails(
        compartment_id=tenancy, name="runs", description="runs", matching_rule=rule
    )  # fmt: skip
    client.create_dynamic_group(group)
    statements = ["allow dynamic-group runs to read repos in tenancy"]
    policy = models.CreatePolicyDetails(
        compartment_id=tenancy, name="runs", description="runs", statements=statements
    )  # fmt: skip
    client.create_policy(policy)


def test_an_image_selects_a_local_environment_for_runs_that_may_pull_it(world: World) -> None:
    admin.push_image(world.clients.cloud, f"{REGISTRY}/vision/run:1")
    container = _container(f"{REGISTRY}/vision/run:1", entrypoint=["python", "-c"], cmd=["print('from an image')"])
    job = world.job(job_environment_configuration_details=container)
    refused = world.finished(world.run(job))
    assert (refused.lifecycle_state, "cannot be pulled" in refused.lifecycle_details) == ("FAILED", True)
    log = (world.clients.cloud.home / "server.log").read_text()
    assert "refused docker pull" in log
    assert "REPOSITORY_READ" in log
    _may_pull(world)
    run = world.run(job)
    assert world.finished(run).lifecycle_state == "SUCCEEDED"
    assert world.lines(run) == ["from an image"]
    _starts_the_launcher(world, f"{REGISTRY}/vision/run:1")


def _starts_the_launcher(world: World, image: str) -> None:
    """The launcher is ours, not a module of the team with the same name in the code folder or in PYTHONPATH."""
    job = world.job(variables={"PYTHONPATH": "library"}, job_environment_configuration_details=_container(image))
    world.upload(job, _shadows(), "code.zip")
    arguments = oci.data_science.models.DefaultJobConfigurationDetails(command_line_arguments="--help")
    run = world.run(job, job_configuration_override_details=arguments)
    assert world.finished(run).lifecycle_state == "SUCCEEDED"
    assert world.lines(run)[0].startswith("python -I -m launcher "), world.lines(run)


def _shadows() -> bytes:
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(buffer, "w") as archive:
        write_shadows(Path(place), Path(place, "library"))
        for file in sorted(Path(place).rglob("*.py")):
            archive.write(file, file.relative_to(place))
    return buffer.getvalue()


def test_an_image_nobody_pushed_fails_the_run(world: World) -> None:
    container = _container(f"{REGISTRY}/vision/none:1", cmd=["true"])
    done = world.finished(world.run(world.job(job_environment_configuration_details=container)))
    assert done.lifecycle_state == "FAILED"
    assert "vision/none:1 cannot be pulled" in done.lifecycle_details


_STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print('asked to end', flush=True), sys.exit(0)))
child = subprocess.Popen(['sleep', '600'], start_new_session=True)
print('child', child.pid, os.readlink('/proc/self/ns/pid'), flush=True)
time.sleep(600)
"""


def test_cancel_ends_every_process_of_the_run(world: World) -> None:
    run = world.run(world.job(_STUBBORN))
    world.printed(run, "child")
    _, number, namespace = world.lines(run)[0].split()
    child = traces.of_node(namespace, int(number))
    assert files.process_start_time(child)
    world.clients.data_science.cancel_job_run(run.id)
    assert world.read(run).lifecycle_state in ("CANCELING", "CANCELED")
    assert world.finished(run).lifecycle_state == "CANCELED"
    assert world.lines(run)[-1] == "asked to end"
    assert not files.process_start_time(child), "what left the process group must end too"
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        world.clients.data_science.cancel_job_run(run.id)
    assert (refused.value.status, refused.value.code) == (409, "IncorrectState")


def test_an_active_run_and_its_job_cannot_be_deleted(world: World) -> None:
    job = world.job("import time; time.sleep(600)")
    run = world.run(job)
    client = world.clients.data_science
    for delete, identifier in ((client.delete_job_run, run.id), (client.delete_job, job)):
        with pytest.raises(oci.exceptions.ServiceError) as refused:
            delete(identifier)
        assert refused.value.status == 409
    client.cancel_job_run(run.id)
    world.finished(run)
    client.delete_job(job, delete_related_job_runs=True)
    assert world.read(run).lifecycle_state == "DELETED"


def test_a_job_without_code_cannot_start_runs(world: World) -> None:
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        world.run(world.job())
    assert (refused.value.status, refused.value.code) == (409, "IncorrectState")


def test_an_artifact_is_read_back_and_never_replaced(world: World) -> None:
    job = world.job("print(1)", name="first.py")
    client = world.clients.data_science
    head = client.head_job_artifact(job)
    assert head.headers["content-length"] == "8"
    assert "first.py" in head.headers["content-disposition"]
    assert client.get_job_artifact_content(job).data.content == b"print(1)"
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        world.upload(job, b"print(2)", "second.py")
    assert refused.value.status == 409


def test_a_log_is_made_for_a_run_on_request(world: World) -> None:
    settings = oci.data_science.models.JobLogConfigurationDetails(
        enable_logging=True, enable_auto_log_creation=True, log_group_id=world.log_group
    )
    run = world.run(world.job("print('own log')", job_log_configuration_details=settings))
    world.finished(run)
    assert world.lines(run) == ["own log"]
    assert world.clients.logging.get_log(world.log_group, run.log_details.log_id).data.display_name == run.id


_NODE = """
import json, os, time
# The file gets more lines as nodes join.
while len(peers := json.load(open(os.environ['CLUSTER_NODES_METADATA_FILE']))) < int(os.environ['NODE_COUNT']):
    time.sleep(0.05)
print(os.environ['NODE_RANK'], 'of', os.environ['NODE_COUNT'], [peer['Rank'] for peer in peers])
raise SystemExit(int(os.environ['NODE_RANK'] == os.environ.get('FAILS')))
"""


def _groups(minimum: int) -> object:
    models = oci.data_science.models
    group = models.JobNodeGroupConfigurationDetails(name="workers", replicas=2, minimum_success_replicas=minimum)
    main = models.JobNodeGroupConfigurationDetails(name="main", replicas=1)
    return models.MultiNodeJobNodeConfigurationDetails(job_node_group_configuration_details_list=[main, group])


def test_node_groups_become_nodes(world: World) -> None:
    run = world.run(world.job(_NODE), job_node_configuration_override_details=_groups(2))
    assert world.finished(run).lifecycle_state == "SUCCEEDED"
    assert sorted(world.lines(run)) == [f"{rank} of 3 [0, 1, 2]" for rank in range(3)]


@pytest.mark.parametrize(("minimum", "state"), [(1, "SUCCEEDED"), (2, "FAILED")])
def test_a_node_group_succeeds_with_its_minimum_of_nodes(world: World, minimum: int, state: str) -> None:
    run = world.run(
        world.job(_NODE, variables={"FAILS": "2"}), job_node_configuration_override_details=_groups(minimum)
    )
    done = world.finished(run)
    assert done.lifecycle_state == state
    assert ("group workers" in done.lifecycle_details) == (state == "FAILED")


def test_output_without_end_of_line_and_in_bulk_is_kept(world: World) -> None:
    run = world.run(world.job("print('\\n'.join(map(str, range(900)))); print('end', end='')"))
    world.finished(run)
    assert world.lines(run) == [*map(str, range(900)), "end"]
    kept = world.clients.cloud.home / "runs" / run.id / "node-0.log"
    assert kept.read_text().endswith("899\nend")


def test_nothing_of_a_finished_run_is_left_running(world: World) -> None:
    script = """
import os, pathlib, subprocess, time
child = subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL, start_new_session=True)
print(child.pid, os.readlink('/proc/self/ns/pid'), flush=True)
while not (pathlib.Path.home() / 'seen').exists(): time.sleep(0.01)
"""
    run = world.run(world.job(script))
    world.printed(run, "pid")
    number, namespace = world.lines(run)[0].split()
    orphan = traces.of_node(namespace, int(number))
    (world.home(run) / "seen").touch()
    assert world.finished(run).lifecycle_state == "SUCCEEDED"
    eventually(lambda: files.process_start_time(orphan), lambda started: not started)


def test_nodes_of_a_live_run_have_addresses_in_its_subnet(world: World) -> None:
    network, core, science = world.clients.network, oci.core.models, oci.data_science.models
    details = core.CreateSubnetDetails(compartment_id=world.compartment, vcn_id=world.vcn.id, cidr_block="10.0.90.0/30")
    subnet = network.create_subnet(details).data.id
    infrastructure = science.StandaloneJobInfrastructureConfigurationDetails(
        shape_name="VM.Standard2.1", block_storage_size_in_gbs=50, subnet_id=subnet
    )
    job = world.job("import time; time.sleep(600)", job_infrastructure_configuration_details=infrastructure)
    refused = world.finished(world.run(job))
    assert (refused.lifecycle_state, "service may not use" in refused.lifecycle_details) == ("FAILED", True)
    models = oci.identity.models
    policy = models.CreatePolicyDetails(
        compartment_id=world.clients.cloud.tenancy, name="service", description="service",
        statements=["allow service datascience to use virtual-network-family in compartment training"],
    )  # fmt: skip
    world.clients.identity.create_policy(policy)
    run = world.run(job)
    addresses = eventually(lambda: network.list_private_ips(subnet_id=subnet).data, bool)
    assert [address.ip_address for address in addresses] == ["10.0.90.2"]
    vnic = network.get_vnic(addresses[0].vnic_id).data
    assert (vnic.private_ip, vnic.lifecycle_state, vnic.subnet_id) == ("10.0.90.2", "AVAILABLE", subnet)
    assert network.get_private_ip(addresses[0].id).data.vnic_id == vnic.id
    full = world.finished(world.run(job))
    assert (full.lifecycle_state, "0 free addresses" in full.lifecycle_details) == ("FAILED", True)
    with pytest.raises(oci.exceptions.ServiceError) as held:
        network.delete_subnet(subnet)
    assert (held.value.status, held.value.code) == (409, "Conflict")
    world.clients.data_science.cancel_job_run(run.id)
    world.finished(run)
    assert network.list_private_ips(subnet_id=subnet).data == []
    assert network.get_vnic(vnic.id).data.lifecycle_state == "TERMINATED"
    network.delete_subnet(subnet)
