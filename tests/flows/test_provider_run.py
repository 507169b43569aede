# SPDX-License-Identifier: Apache-2.0
"""`trainyard:index:Run` through the provider protocol, on the local cloud, with real runs."""

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import oci
import pytest

from components.oci.client.session import Session
from components.platform.values import UNKNOWN, Secret
from localcloud import control
from localcloud.admin import push_image
from localcloud.oci.plugin.plugin import LocalOci
from provider.plugin import Trainyard
from provider.runs.starting import RETRY_FAILED
from tests.support.cloud_fixture import Clients, local_cloud
from tests.support.cloud_world import runs_may_log
from tests.support.provider_client import Failed, Resource, engine_side
from tests.support.run_world import World, configured, job_inputs, node, placed
from tests.support.waiting import eventually

RUN = "trainyard:index:Run"
# Seconds of a run that must still be running. It is always ended earlier.
LONG = "3600"
# An idle machine needs two seconds.
_SECONDS = 300.0


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[control.Cloud]:
    with local_cloud(tmp_path_factory.mktemp("cloud") / "cloud") as started:
        runs_may_log(Clients(started))
        yield started


@pytest.fixture
def world(cloud: control.Cloud, tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, cloud.env))
        oci, engine = (configured(stack, plugin) for plugin in (LocalOci(), Trainyard()))
        group = oci.create("oci:Logging/logGroup:LogGroup", "logs", placed(cloud, displayName="logs"))
        stack.callback(oci.delete, group)
        log_inputs = {"logGroupId": group.id, "displayName": "runs", "logType": "CUSTOM"}
        log = oci.create("oci:Logging/log:Log", "runs", log_inputs)
        stack.callback(oci.delete, log)
        project = oci.create("oci:DataScience/project:Project", "project", placed(cloud, displayName="p"))
        stack.callback(oci.delete, project)
        job = oci.create("oci:DataScience/job:Job", "job", job_inputs(cloud, project.id, tmp_path))
        stack.callback(oci.delete, job)
        yield World(cloud, engine, oci, project, job, group, log, Session.of({}))


def test_a_run_runs_to_its_end_and_the_second_up_changes_nothing(world: World) -> None:
    made = world.engine.create(RUN, "run", world.inputs())
    assert made.outputs["state"] == "SUCCEEDED"
    assert [node["state"] for node in made.outputs["nodeRuns"]] == ["SUCCEEDED"]
    assert made.outputs["startedAt"] <= made.outputs["finishedAt"]
    assert made.id == made.outputs["nodeRuns"][0]["id"]
    assert not world.engine.diff(made, world.inputs()).detailedDiff
    seen = world.engine.refresh(made)
    assert seen is not None
    assert seen.inputs == made.inputs
    assert any("SUCCEEDED" in line for line in world.engine.heard.lines)
    world.engine.delete(made)
    assert [run.lifecycle_state for run in world.runs()] == ["SUCCEEDED"]


def test_every_node_gets_the_ocid_of_the_main_run(world: World) -> None:
    nodes = [node("main", 0), node("worker-0", 1, "worker"), node("worker-1", 2, "worker")]
    reservation = "ocid1.capacityreservation.oc1.iad.ours"
    made = world.engine.create(RUN, "run", world.inputs(nodes=nodes, capacityReservation=reservation))
    main, *workers = (node["id"] for node in made.outputs["nodeRuns"])
    client = world.session.client("data_science")
    for worker in workers:
        configuration = client.get_job_run(worker).data.job_configuration_override_details
        assert configuration.environment_variables["MAIN_JOB_RUN_OCID"] == main
    assert len(world.runs()) == 3
    # Each job run is of one node, so each starts in the reservation.
    machines = [client.get_job_run(one).data.job_infrastructure_configuration_details for one in (main, *workers)]
    assert {machine.capacity_reservation_id for machine in machines} == {reservation}
    assert {machine.shape_name for machine in machines} == {"VM.Standard2.1"}
    seen = world.engine.refresh(made)
    assert seen is not None
    assert seen.inputs["capacityReservation"] == reservation


def test_until_started_does_not_wait_for_the_end_and_delete_cancels(world: World) -> None:
    inputs = world.inputs(until="started", nodes=[node("main", 0, SECONDS_TO_RUN=LONG)])
    made = world.engine.create(RUN, "run", inputs)
    assert made.outputs["state"] == "IN_PROGRESS"
    world.engine.delete(made)
    assert [run.lifecycle_state for run in world.runs()] == ["CANCELED"]
    world.engine.delete(made)


def test_runs_of_a_sweep_take_turns_and_up_waits_for_none_of_their_ends(world: World) -> None:
    """As `up` creates them, side by side."""

    def create(name: str) -> str:
        alone = {"atMost": 1, "names": "sweep-lr-"}
        seconds = node("main", 0, SECONDS_TO_RUN="1")
        tags = {"job": "line", "run": name}
        made = world.engine.create(
            RUN, name, world.inputs(tags=tags, turns=alone, until="accepted", displayName=name, nodes=[seconds])
        )
        return str(made.outputs["state"])

    names = [f"sweep-lr-{number}" for number in range(3)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(create, names))
    runs = eventually(world.runs, lambda runs: all(run.lifecycle_state == "SUCCEEDED" for run in runs))
    assert len(runs) == 3
    inside = sorted((run.time_accepted, run.time_finished) for run in runs)
    assert all(ended <= begun for (_, ended), (begun, _) in pairwise(inside))
    assert any("waits for its turn: at most 1 of the sweep at once" in line for line in world.engine.heard.lines)


def test_a_failed_run_fails_up_with_its_last_lines_and_ends_its_other_nodes(world: World) -> None:
    nodes = [node("main", 0, SECONDS_TO_RUN=LONG), node("worker", 1, "worker", EXIT_CODE="3")]
    with pytest.raises(Failed) as failed:
        world.engine.create(RUN, "run", world.inputs(nodes=nodes))
    message = str(failed.value)
    assert "FAILED: node worker" in message.splitlines()[0]
    assert "exited with code 3" in message
    assert "done" in message
    assert "attempt" in message.splitlines()[-1]
    kept = failed.value.kept
    assert kept is not None
    assert kept.outputs["state"] == "FAILED"
    world.engine.delete(kept)
    assert sorted(run.lifecycle_state for run in world.runs()) == ["CANCELED", "FAILED"]


def test_the_rank_that_failed_first_is_named(world: World) -> None:
    """On the platform, the main node ends first: its launcher ended it because of the worker, whose end takes
    longer."""
    says, own = "[0.launcher] stopped: rank 1 (worker-0) failed with code 3", "the worker's own line"
    main = node("main", 0, EXIT_CODE="3", SAYS=says, ENDS_WHEN_TOLD="1")
    worker = node("worker-0", 1, "worker", SECONDS_TO_RUN=LONG, TOKEN=f"\x1b[2J {own}")

    def logs_of_worker() -> list[Path]:
        return [log for log in world.cloud.home.glob("runs/*/node-0.log") if own in log.read_text()]

    def end_main_once_the_worker_printed() -> None:
        (log,) = eventually(logs_of_worker)
        (leader,) = (run.id for run in world.runs() if run.id != log.parent.name)
        (world.cloud.home / "runs" / leader / "node-0" / "ends").touch()

    helper = threading.Thread(target=end_main_once_the_worker_printed)
    helper.start()
    with pytest.raises(Failed) as failed:
        world.engine.create(RUN, "run", world.inputs(nodes=[main, worker]))
    helper.join(_SECONDS)
    message = str(failed.value)
    assert "is FAILED: node worker-0" in message.splitlines()[0]
    assert "Its launchers say: rank 1 (worker-0) failed with code 3." in message
    assert own in message.partition("Its last lines (worker-0):")[2]
    assert "\x1b" not in message


def test_up_repeats_a_failure_and_a_higher_attempt_starts_again(world: World) -> None:
    inputs = world.inputs(nodes=[node("main", 0, EXIT_CODE="3")])
    with pytest.raises(Failed) as failed:
        world.engine.create(RUN, "run", inputs)
    kept = failed.value.kept
    assert kept is not None
    with pytest.raises(Failed, match="exited with code 3"):
        world.engine.update(kept, inputs)
    assert len(world.runs()) == 1
    assert list(world.engine.diff(kept, {**inputs, "attempt": 2}).replaces) == ["attempt"]
    assert not world.engine.diff(kept, inputs).replaces, "only an `up` that is told so starts it again"
    with patch.dict(os.environ, {RETRY_FAILED: "1"}):
        assert list(world.engine.diff(kept, inputs).replaces) == ["state"]
    world.engine.delete(kept)
    with pytest.raises(Failed, match="exited with code 3"):
        world.engine.create(RUN, "run", inputs)
    assert len(world.runs()) == 2


def _lose_worker(world: World, made: Resource) -> str:
    """Its job run does not exist and has no record, as if it had never been started."""
    client = world.session.client("data_science")
    lost: str = made.outputs["nodeRuns"][1]["id"]
    client.cancel_job_run(lost)
    eventually(lambda: client.get_job_run(lost).data.lifecycle_state == "CANCELED")
    client.delete_job_run(lost)
    return lost


def test_an_interrupted_create_continues_with_its_nodes(world: World) -> None:
    """The provider was killed after it had started a node, and has no memory of that."""
    nodes = [node("main", 0, SECONDS_TO_RUN=LONG), node("worker", 1, "worker", SECONDS_TO_RUN=LONG)]
    inputs = world.inputs(nodes=nodes, until="started")
    first = world.engine.create(RUN, "run", inputs)
    _lose_worker(world, first)
    with engine_side(Trainyard()) as engine:
        engine.configure()
        again = engine.create(RUN, "run", inputs)
        assert any("going on from there" in line for line in engine.heard.lines)
    assert again.id == first.id
    assert len(world.runs()) == 2
    world.engine.delete(again)


def test_ads_images_get_a_work_dir_for_each_start(world: World) -> None:
    """The same on all of its nodes, including those that a second `up` adds, and different in the next start of the
    run."""
    client = world.session.client("data_science")
    place = {"OCI__WORK_DIR": "oci://b@ns/line/base/1", "SECONDS_TO_RUN": LONG}
    inputs = world.inputs(nodes=[node("main", 0, **place), node("worker", 1, "worker", **place)], until="started")

    def told(made: Resource) -> list[str]:
        runs = [client.get_job_run(node["id"]).data for node in made.outputs["nodeRuns"]]
        return [run.job_configuration_override_details.environment_variables["OCI__WORK_DIR"] for run in runs]

    first = world.engine.create(RUN, "run", inputs)
    places = told(first)
    lost = _lose_worker(world, first)
    with engine_side(Trainyard()) as engine:
        engine.configure()
        again = engine.create(RUN, "run", inputs)
    assert again.outputs["nodeRuns"][1]["id"] != lost
    assert told(again) == places
    assert len(set(places)) == 1
    imported = world.engine.import_(RUN, "run", again.id)
    assert imported is not None
    assert not [path for path in world.engine.diff(imported, inputs).detailedDiff if "environment" in path]
    world.engine.delete(again)
    other = world.engine.create(RUN, "run", inputs)
    assert len({*told(other), *places, place["OCI__WORK_DIR"]}) == 3
    world.engine.delete(other)


def test_a_run_made_again_after_a_destroy_is_a_new_run(world: World) -> None:
    first = world.engine.create(RUN, "run", world.inputs())
    world.engine.delete(first)
    second = world.engine.create(RUN, "run", world.inputs())
    assert second.id != first.id
    assert len(world.runs()) == 2


def test_a_forced_replacement_does_not_adopt_the_old_run(world: World) -> None:
    first = world.engine.create(RUN, "run", world.inputs())
    second = world.engine.create(RUN, "run", world.inputs(), old=first.inputs)
    assert second.id != first.id


def test_cancelling_up_keeps_started_runs(world: World) -> None:
    caught: list[Failed] = []

    def create() -> None:
        with pytest.raises(Failed) as failed:
            world.engine.create(RUN, "run", world.inputs(nodes=[node("main", 0, SECONDS_TO_RUN=LONG)]))
        caught.append(failed.value)

    worker = threading.Thread(target=create)
    worker.start()
    eventually(lambda: any("IN_PROGRESS" in line for line in world.engine.heard.statuses))
    world.engine.cancel()
    worker.join(_SECONDS)
    kept = caught[0].kept
    assert kept is not None
    assert "Stopped waiting" in str(caught[0])
    with engine_side(Trainyard()) as engine:
        engine.configure()
        engine.delete(kept)
    assert [run.lifecycle_state for run in world.runs()] == ["CANCELED"]


def test_a_timed_out_wait_gives_a_remedy(world: World) -> None:
    inputs = world.inputs(nodes=[node("main", 0, SECONDS_TO_RUN=LONG)], timeouts={"started": 0.01, "finished": 0.01})
    with pytest.raises(Failed, match=r"is not finished after 0.02 minutes(.|\n)*again to wait for it") as failed:
        world.engine.create(RUN, "run", inputs)
    assert failed.value.kept is not None
    world.engine.delete(failed.value.kept)


def test_tags_and_name_change_in_place(world: World) -> None:
    made = world.engine.create(RUN, "run", world.inputs())
    wanted = world.inputs(tags={"team": "speech"}, displayName="renamed", until="started")
    diff = world.engine.diff(made, wanted)
    assert diff.detailedDiff
    assert not diff.replaces
    changed = world.engine.update(made, wanted)
    (run,) = world.runs()
    assert run.display_name == "renamed"
    assert run.freeform_tags["team"] == "speech"
    seen = world.engine.refresh(changed)
    assert seen is not None
    assert seen.inputs == changed.inputs


@pytest.mark.parametrize(("code", "state"), [("0", "SUCCEEDED"), ("3", "FAILED")])
def test_a_run_that_ended_stays_when_its_records_are_deleted(world: World, code: str, state: str) -> None:
    """The training is done, so nothing starts it again: neither a refresh, nor a new tag, nor a destroy."""
    nodes = [node("main", 0, EXIT_CODE=code), node("worker", 1, "worker")]
    inputs = world.inputs(nodes=nodes)
    if code == "0":
        made = world.engine.create(RUN, "run", inputs)
    else:
        with pytest.raises(Failed) as failed:
            world.engine.create(RUN, "run", inputs)
        assert failed.value.kept is not None
        made = failed.value.kept
    client = world.session.client("data_science")
    for one in made.outputs["nodeRuns"]:
        client.delete_job_run(one["id"])
    eventually(lambda: not world.runs())

    seen = world.engine.refresh(made)
    assert seen is not None
    assert (seen.outputs, seen.inputs) == (made.outputs, made.inputs)
    assert f"run: its records are gone; it stays {state}" in world.engine.heard.lines[-1]
    if state == "SUCCEEDED":
        assert not world.engine.diff(seen, inputs).detailedDiff
        renamed = {**inputs, "displayName": "renamed"}
        changed = world.engine.update(seen, renamed)
        assert {**changed.outputs, "displayName": "run"} == seen.outputs
    world.engine.delete(seen)
    assert not world.runs()


def test_a_worker_whose_record_was_deleted_has_still_ended(world: World) -> None:
    made = world.engine.create(RUN, "run", world.inputs(nodes=[node("main", 0), node("worker", 1, "worker")]))
    world.session.client("data_science").delete_job_run(made.outputs["nodeRuns"][1]["id"])
    eventually(lambda: len(world.runs()) == 1)
    seen = world.engine.refresh(made)
    assert seen is not None
    assert seen.outputs == made.outputs


def test_a_live_run_without_records_is_planned_again(world: World) -> None:
    made = world.engine.create(RUN, "run", world.inputs(nodes=[node("main", 0, SECONDS_TO_RUN=LONG)], until="started"))
    client = world.session.client("data_science")
    client.cancel_job_run(made.id)
    eventually(lambda: client.get_job_run(made.id).data.lifecycle_state == "CANCELED")
    client.delete_job_run(made.id)
    eventually(lambda: not world.runs())
    assert world.engine.refresh(made) is None
    assert "it had not ended (main IN_PROGRESS): the next `up` starts it anew" in world.engine.heard.lines[-1]
    world.engine.delete(made)


def test_status_objects_in_the_bucket_decide_how_a_run_without_records_ended(world: World) -> None:
    """`up` waited only until it started, and its records were deleted before the state was looked at again."""
    cloud, storage = world.cloud, world.session.client("object_storage")
    bucket = world.oci.create("oci:ObjectStorage/bucket:Bucket", "left", placed(cloud, namespace=cloud.namespace))
    name = bucket.outputs["name"]
    launch = json.dumps({"folder": f"oci://{name}@{cloud.namespace}/line/base/1"})
    nodes = [node("main", 0, TRAINYARD_LAUNCH=launch), node("worker", 1, "worker", TRAINYARD_LAUNCH=launch)]
    made = world.engine.create(RUN, "run", world.inputs(nodes=nodes, until="started"))
    client = world.session.client("data_science")
    for one in made.outputs["nodeRuns"]:
        eventually(partial(client.get_job_run, one["id"]), lambda run: run.data.lifecycle_state == "SUCCEEDED")
        client.delete_job_run(one["id"])
    eventually(lambda: not world.runs())
    made.outputs["nodeRuns"] = [{**one, "state": "IN_PROGRESS"} for one in made.outputs["nodeRuns"]]
    places = [f"line/base/1/{made.id[-12:]}/status/{rank}.json" for rank in (0, 1)]
    try:
        storage.put_object(cloud.namespace, name, places[0], json.dumps({"state": "succeeded"}).encode())
        assert world.engine.refresh(made) is None, "nobody knows of the other"
        storage.put_object(cloud.namespace, name, places[1], json.dumps({"state": "stopped"}).encode())
        seen = world.engine.refresh(made)
        assert seen is not None
        assert seen.outputs["state"] == "SUCCEEDED"
        assert "it stays SUCCEEDED" in world.engine.heard.lines[-1]
        assert not world.engine.diff(seen, made.inputs).detailedDiff
    finally:
        for place in places:
            with suppress(oci.exceptions.ServiceError):
                storage.delete_object(cloud.namespace, name, place)
        world.oci.delete(bucket)


def test_import_finds_all_nodes_from_one(world: World) -> None:
    nodes = [node("main", 0, A="1"), node("worker", 1, "worker", A="2")]
    made = world.engine.create(RUN, "run", world.inputs(nodes=nodes))
    imported = world.engine.import_(RUN, "run", made.id)
    assert imported is not None
    assert [node["id"] for node in imported.outputs["nodeRuns"]] == [node["id"] for node in made.outputs["nodeRuns"]]
    assert imported.inputs["nodes"][0]["environment"]["A"] == Secret("1")
    changes = world.engine.diff(imported, world.inputs(nodes=nodes)).detailedDiff
    # Each with its message.
    assert {path for path in changes if not path.startswith("[")} <= {"until", "timeouts"}
    assert world.engine.import_(RUN, "run", f"{made.id}x") is None


def test_secret_inputs_of_a_run_are_secret_outputs(world: World) -> None:
    nodes = [node("main", 0, TOKEN=Secret("hush-hush"), EXIT_CODE="1")]
    with pytest.raises(Failed) as failed:
        world.engine.create(RUN, "run", world.inputs(nodes=nodes))
    assert "hush-hush" not in str(failed.value)
    assert "[secret]" in str(failed.value)
    assert "hush-hush" not in world.engine.heard.everything
    kept = failed.value.kept
    assert kept is not None
    assert kept.outputs["nodes"][0]["environment"]["TOKEN"] == Secret("hush-hush")
    seen = world.engine.refresh(kept)
    assert seen is not None
    assert seen.inputs["nodes"][0]["environment"]["TOKEN"] == Secret("hush-hush")


def test_a_missing_image_is_reported_before_a_run_is_made(world: World) -> None:
    image = f"iad.ocir.io/{world.cloud.namespace}/vision/dt:1"
    with pytest.raises(Failed, match=rf"docker push {image}") as failed:
        world.engine.create(RUN, "run", world.inputs(image=image))
    assert failed.value.kept is None
    assert not world.runs()


def test_the_wait_for_access_is_visible_and_has_a_timeout(world: World) -> None:
    inputs = world.inputs(job="ocid1.datasciencejob.oc1.iad.none", timeouts={"access": 0.02})
    with pytest.raises(Failed, match="404 NotAuthorizedOrNotFound"):
        world.engine.create(RUN, "run", inputs)
    assert any("trying again" in line for line in world.engine.heard.statuses)


def test_node_groups_are_one_job_run(world: World, tmp_path: Path) -> None:
    groups = [{"name": "main", "replicas": 1}, {"name": "worker", "replicas": 2}]
    network = {"jobNetworkType": "DEFAULT_NETWORK"}
    layout = {
        "jobNodeType": "MULTI_NODE",
        "jobNetworkConfiguration": network,
        "jobNodeGroupConfigurationDetailsLists": groups,
    }
    inputs = job_inputs(world.cloud, world.project.id, tmp_path)
    inputs["jobInfrastructureConfigurationDetails"] = {
        **inputs["jobInfrastructureConfigurationDetails"],
        "jobInfrastructureType": "MULTI_NODE",
    }
    job = world.oci.create("oci:DataScience/job:Job", "multi", {**inputs, "jobNodeConfigurationDetails": layout})
    try:
        nodes = [
            {**node("main", 0), "replicas": 1},
            {**node("worker", 1, "worker"), "replicas": 2, "minimumSuccess": 1},
        ]
        made = world.engine.create(RUN, "run", world.inputs(job=job.id, nodes=nodes, layout="node-groups"))
        assert made.outputs["state"] == "SUCCEEDED"
        assert [node["name"] for node in made.outputs["nodeRuns"]] == ["main", "worker"]
        assert {node["id"] for node in made.outputs["nodeRuns"]} == {made.id}
        imported = world.engine.import_(RUN, "run", made.id)
        assert imported is not None
        assert imported.inputs["layout"] == "node-groups"
        assert [node["name"] for node in imported.inputs["nodes"]] == ["main", "worker"]

        nodes[1]["environment"] = {"EXIT_CODE": "3"}
        with pytest.raises(Failed) as failed:
            world.engine.create(RUN, "broken", world.inputs(job=job.id, nodes=nodes, layout="node-groups"))
        assert "of group worker" in str(failed.value)
        assert "node main" not in str(failed.value), "the groups share their run's end"
        assert "Its last lines:" in str(failed.value)
    finally:
        world.oci.delete(job)


def test_outputs_that_an_update_may_change_are_unknown_in_the_preview(world: World) -> None:
    outputs = world.engine.preview(RUN, "run", world.inputs(job=UNKNOWN))
    assert outputs["state"] is UNKNOWN
    assert outputs["displayName"] == "run"
    assert not world.runs()


def test_a_start_is_retried_until_a_new_policy_takes_effect(world: World) -> None:
    """A user whose policy takes effect late: the first call is retried visibly, and then succeeds."""
    policy = {
        "compartmentId": world.cloud.compartment,
        "name": "late",
        "description": "d",
        "statements": [
            f"allow group scientists to {verb} in compartment id {world.cloud.compartment}"
            for verb in ("manage data-science-family", "use log-groups", "use log-content")
        ],
    }
    made: list[Resource] = []
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, world.cloud.env_for("user")))
        user = configured(stack, Trainyard())
        inputs = world.inputs(timeouts={"access": 10, "started": 10, "finished": 10})
        worker = threading.Thread(target=lambda: made.append(user.create(RUN, "run", inputs)))
        worker.start()
        eventually(lambda: any("404 NotAuthorizedOrNotFound" in line for line in user.heard.statuses))
        granted = world.oci.create("oci:Identity/policy:Policy", "late", policy)
        try:
            worker.join(_SECONDS)
            assert made
            assert made[0].outputs["state"] == "SUCCEEDED"
            user.delete(made[0])
        finally:
            world.oci.delete(granted)


def test_a_pushed_image_is_found(world: World) -> None:
    image = f"iad.ocir.io/{world.cloud.namespace}/vision/dt:2"
    push_image(world.cloud, image)
    made = world.engine.create(RUN, "run", world.inputs(image=image, until="accepted"))
    world.engine.delete(made)
