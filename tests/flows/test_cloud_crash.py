# SPDX-License-Identifier: Apache-2.0
"""The local cloud killed at any moment, started twice at once, used by several clients at once."""

import os
import signal
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import oci
import pytest
from click.testing import CliRunner

from localcloud import control, files
from localcloud.control import Cloud
from tests.support import traces
from tests.support.cloud_fixture import Clients, kill, local_cloud
from tests.support.cloud_world import World
from tests.support.waiting import LONGEST_SECONDS, eventually
from trainyard.cli.cloud import cloud as command


def _create_until_it_breaks(world: World, bucket: str, made: list[str], enough: threading.Event) -> None:
    """Makes objects and projects as fast as possible. `made` has those for which a response came."""
    namespace = "trainyardlocal"
    details = oci.data_science.models.CreateProjectDetails(compartment_id=world.compartment, display_name=bucket)
    try:
        while True:
            made.append(world.clients.data_science.create_project(details).data.id)
            world.clients.storage.put_object(namespace, bucket, made[-1], made[-1].encode())
            if len(made) == 25:
                enough.set()
    except Exception:  # the connection is cut in whichever of many ways
        enough.set()


def test_a_cloud_killed_under_load_restarts_with_consistent_data(tmp_path: Path) -> None:
    with local_cloud(tmp_path / "cloud") as cloud:
        worlds = [World(Clients(cloud)) for _ in range(2)]
        made: list[list[str]] = [[], []]
        enough = [threading.Event(), threading.Event()]
        for index, world in enumerate(worlds):
            details = oci.object_storage.models.CreateBucketDetails(name=f"b{index}", compartment_id=world.compartment)
            world.clients.storage.create_bucket("trainyardlocal", details)
        with ThreadPoolExecutor(2) as pool:
            for index, world in enumerate(worlds):
                pool.submit(_create_until_it_breaks, world, f"b{index}", made[index], enough[index])
            assert all(event.wait(LONGEST_SECONDS) for event in enough)
            assert min(map(len, made)) >= 25, "it broke before it was killed"
            kill(cloud)
        again = Clients(control.start_cloud(cloud.home))
        for index, identifiers in enumerate(made):
            for identifier in identifiers[:-1]:
                assert again.data_science.get_project(identifier).data.id == identifier
                stored = again.storage.get_object("trainyardlocal", f"b{index}", identifier).data.content
                assert stored == identifier.encode()
        listed = [item.name for index in range(2) for item in _objects(again, f"b{index}")]
        assert len(listed) == sum(1 for path in (cloud.home / "objects").iterdir() if path.is_file())
        assert not list((cloud.home / "objects" / "incoming").iterdir())


def _objects(clients: Clients, bucket: str) -> list[oci.object_storage.models.ObjectSummary]:
    listed = oci.pagination.list_call_get_all_results(clients.storage.list_objects, "trainyardlocal", bucket)
    return list(listed.data.objects)


_PARENT = """
import os, subprocess, time
child = subprocess.Popen(['sleep', '600'], start_new_session=True).pid
print(child, os.readlink('/proc/self/ns/pid'), flush=True)
time.sleep(600)
"""


def _running_child(world: World, run: object) -> int:
    world.printed(run, "")
    number, namespace, *_ = world.lines(run)[0].split()
    return traces.of_node(namespace, int(number))


def _after_a_new_start(cloud: Cloud, run: object) -> tuple[World, Any]:
    """Waits for the run's end, and returns it with a new `World`."""
    world = World(Clients(control.start_cloud(cloud.home)))
    return world, world.finished(run)


_TWO_LIVES = """
import os, pathlib, subprocess, time
before = os.listdir()
pathlib.Path('left').touch()
child = subprocess.Popen(['sleep', '600'], start_new_session=True).pid
print(child, os.readlink('/proc/self/ns/pid'), before, flush=True)
while not (pathlib.Path.home() / 'ends').exists(): time.sleep(0.02)
"""


def test_after_a_kill_no_process_of_a_run_survives_and_the_run_starts_again(tmp_path: Path) -> None:
    with local_cloud(tmp_path / "cloud") as cloud:
        world = World(Clients(cloud))
        run = world.run(world.job(_TWO_LIVES))
        child = _running_child(world, run)
        kill(cloud)
        eventually(lambda: files.process_start_time(child), lambda started: not started)
        again = World(Clients(control.start_cloud(cloud.home)))
        said = eventually(lambda: again.lines(run), lambda lines: len(lines) == 2)
        assert all(line.endswith("['train.py']") for line in said), "a machine that starts anew has an empty disk"
        (again.home(run) / "ends").touch()
        done = again.finished(run)
        assert (done.lifecycle_state, done.time_finished is None) == ("SUCCEEDED", False)


_ENDS_WHEN_TOLD = """
import pathlib, sys, time
print('here', flush=True)
while not (pathlib.Path.home() / 'ends').exists():
    time.sleep(0.02)
sys.exit({code})
"""


@pytest.mark.parametrize(("code", "state", "said"), [(0, "SUCCEEDED", ""), (3, "FAILED", "exited with code 3")])
def test_a_run_that_ended_during_the_kill_is_not_started_again(
    tmp_path: Path, code: int, state: str, said: str
) -> None:
    with local_cloud(tmp_path / "cloud") as cloud:
        world = World(Clients(cloud))
        run = world.run(world.job(_ENDS_WHEN_TOLD.format(code=code)))
        world.printed(run, "here")
        os.kill(cloud.pid, signal.SIGSTOP)
        (cloud.home / "runs" / run.id / "node-0" / "ends").touch()
        eventually(lambda: list(cloud.home.glob("runs/*/node-0.result")), bool)
        kill(cloud)
        again, done = _after_a_new_start(cloud, run)
        assert (done.lifecycle_state, said in (done.lifecycle_details or "")) == (state, True)
        assert again.lines(run) == ["here"]


_DOES_NOT_LISTEN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('here', flush=True)
time.sleep(600)
"""


def test_a_run_that_was_being_cancelled_is_not_started_again(tmp_path: Path) -> None:
    with local_cloud(tmp_path / "cloud") as cloud:
        world = World(Clients(cloud))
        run = world.run(world.job(_DOES_NOT_LISTEN))
        world.printed(run, "here")
        world.clients.data_science.cancel_job_run(run.id)
        assert world.read(run).lifecycle_state == "CANCELING"
        kill(cloud)
        _, done = _after_a_new_start(cloud, run)
        assert done.lifecycle_state == "CANCELED"


def test_a_stopped_cloud_fails_its_runs_and_leaves_no_process(cloud: Cloud) -> None:
    world = World(Clients(cloud))
    run = world.run(world.job(_PARENT))
    child = _running_child(world, run)
    assert control.stop_cloud(cloud.home)
    assert not files.process_start_time(child)
    assert not (cloud.home / "server.json").exists()
    control.start_cloud(cloud.home)
    done = World(Clients(control.start_cloud(cloud.home))).read(run)
    assert (done.lifecycle_state, "stopped" in done.lifecycle_details) == ("FAILED", True)


def test_concurrent_starts_make_one_cloud(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    try:
        with ThreadPoolExecutor(4) as pool:
            clouds = list(pool.map(lambda _: control.start_cloud(home), range(4)))
        assert len({cloud.pid for cloud in clouds}) == 1
    finally:
        control.stop_cloud(home)
    assert control.find_running_cloud(home) is None
    assert not control.stop_cloud(home)


def test_a_stale_pid_record_never_kills_another_process(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    home.mkdir()
    (home / "server.json").write_text(f'{{"pid": {os.getpid()}, "started": "1", "port": 1}}')
    assert control.find_running_cloud(home) is None
    assert not control.stop_cloud(home)


def test_two_clients_at_once_are_served_correctly(cloud: Cloud) -> None:
    def create(number: int) -> list[str]:
        client = Clients(cloud, "deployer").data_science
        details = oci.data_science.models.CreateProjectDetails(compartment_id=cloud.compartment)
        return [client.create_project(details).data.id for _ in range(30)]

    with ThreadPoolExecutor(4) as pool:
        made = [identifier for batch in pool.map(create, range(4)) for identifier in batch]
    listed = oci.pagination.list_call_get_all_results(
        Clients(cloud).data_science.list_projects, cloud.compartment, limit=17
    ).data
    assert sorted(item.id for item in listed) == sorted(made)


def test_a_cloud_that_cannot_start_names_the_reason_and_the_remedy(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    home.mkdir()
    (home / "state.sqlite3").write_bytes(b"not a database" * 1000)
    with pytest.raises(control.CloudError, match=r"state\.sqlite3 cannot be used .*trainyard cloud reset"):
        control.start_cloud(home)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(control.CloudError, match=f"port {port} is not available"):
            control.start_cloud(tmp_path / "other", port)


def test_cloud_commands_start_show_stop_and_reset_the_cloud(tmp_path: Path) -> None:
    home = ["--home", str(tmp_path / "cloud")]
    invoke: Callable[..., Any] = CliRunner().invoke
    try:
        assert invoke(command, ["status", *home]).exit_code == 1
        refused = invoke(command, ["env", *home])
        assert (refused.exit_code, "trainyard cloud start" in refused.output) == (1, True)
        assert "answers at http://127.0.0.1:" in invoke(command, ["start", *home]).output
        as_started = invoke(command, ["status", *home]).output
        assert "It runs at" in as_started
        assert "after the local cloud started" not in as_started
        # As after `git pull`: the code is newer than the running cloud.
        os.utime(tmp_path / "cloud" / "server.json", (1, 1))
        for word in ("start", "status"):
            older = invoke(command, [word, *home]).output
            assert "changed after the local cloud started" in older
            assert "trainyard cloud stop --home" in older
        exported = invoke(command, ["env", *home, "--profile", "user"]).output
        assert "export OCI_CONFIG_PROFILE=user" in exported
        assert "oci_core.VirtualNetworkClient=http://127.0.0.1:" in exported
        pushed = invoke(command, ["push", *home, "iad.ocir.io/trainyardlocal/a/b:1"])
        assert "sha256:" in pushed.output
        wrong = invoke(command, ["push", *home, "docker.io/library/python"])
        assert (wrong.exit_code, "iad.ocir.io/trainyardlocal" in wrong.output) == (1, True)
        assert "PushContainerImage by deployer" in invoke(command, ["log", *home]).output
        assert invoke(command, ["stop", *home]).output == "Stopped.\n"
        assert invoke(command, ["reset", *home, "--yes"]).exit_code == 0
        assert not (tmp_path / "cloud").exists()
    finally:
        control.stop_cloud(tmp_path / "cloud")


def test_reset_refuses_a_folder_that_is_not_a_clouds(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    result = CliRunner().invoke(command, ["reset", "--yes", "--home", str(tmp_path)])
    assert (result.exit_code, (tmp_path / "precious").read_text()) == (1, "x")
