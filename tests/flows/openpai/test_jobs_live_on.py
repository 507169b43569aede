# SPDX-License-Identifier: Apache-2.0
"""Jobs of the local OpenPAI survive a kill and a stop of the cloud, and a full virtual cluster."""

from __future__ import annotations

import sqlite3
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from localcloud import admin, control
from localcloud.control import Cloud
from tests.support.cloud_fixture import kill, local_cloud
from tests.support.openpai_world import OpenPaiWorld, job
from tests.support.waiting import eventually

# The first attempt of the job would never end by itself.
_ONCE_LOST = 'echo "attempt $FC_FRAMEWORK_ATTEMPT_ID"; [ "$FC_FRAMEWORK_ATTEMPT_ID" -ge 1 ] || sleep 3600'
_TASK_ONCE_LOST = 'echo "attempt $FC_TASK_ATTEMPT_ID"; [ "$FC_TASK_ATTEMPT_ID" -ge 1 ] || sleep 3600'
_ALONE: dict[str, Any] = {"extras": {"gangAllocation": False}}
_WITH_GPU = {"resourcePerInstance": {"cpu": 1, "memoryMB": 256, "gpu": 1}}
# A host that was lost.
_LOST = -1001


@pytest.mark.parametrize("end", [kill, lambda cloud: control.stop_cloud(cloud.home)], ids=["killed", "stopped"])
def test_no_job_is_lost_when_the_cloud_is_killed(end: Any, tmp_path: Path) -> None:
    with local_cloud(tmp_path / "cloud") as cloud:
        world = OpenPaiWorld(cloud)
        admin.add_fault(cloud, kind="limit", limit="openpai.default.gpu", value=1)
        done = world.submitted(job("done", "echo well", secrets={"word": "sesame"}))
        world.ended(done)
        names = [
            world.submitted(job("gang", _ONCE_LOST, role={"instances": 2})),
            world.submitted(job("alone", _TASK_ONCE_LOST, **_ALONE)),
            world.submitted(job("first", _ONCE_LOST, role=_WITH_GPU)),
        ]
        for name in names:
            world.reaches(name, "RUNNING")
            eventually(lambda name=name: _log(world, name), "attempt 0\n".__eq__)  # type: ignore[misc]
        # The only GPU is taken, so this one waits.
        waiting = world.submitted(job("second", "echo my turn", role=_WITH_GPU))
        [event] = world.ask("GET", f"/api/v2/jobs/{waiting}/events").body["data"]
        assert "gpu" in event["message"]
        before = world.accounts
        end(cloud)

        again = OpenPaiWorld(control.start_cloud(cloud.home))
        assert again.accounts == before
        assert again.status(done)["jobStatus"]["state"] == "SUCCEEDED"
        assert _log(again, done) == "well\n"
        for name in names:
            status = again.ended(name)["jobStatus"]
            assert (status["state"], status["retryDetails"]["user"]) == ("SUCCEEDED", 0)
        assert again.ended(waiting)["jobStatus"]["state"] == "SUCCEEDED"
        attempts = again.ask("GET", f"/api/v2/jobs/{names[0]}/job-attempts").body
        assert [(each["attemptIndex"], each["exitCode"]) for each in attempts] == [(1, 0), (0, _LOST)]
        task = again.ask("GET", f"/api/v2/jobs/{names[1]}/attempts/0/taskRoles/worker/taskIndex/0/attempts").body
        assert [each["containerExitCode"] for each in task["attempts"]] == [0, _LOST]
        # What the lost attempt had printed is still there.
        assert _log(again, names[0]) == "attempt 0\n"
        # The secrets of an ended job are removed.
        assert "sesame" not in _everything_kept(cloud)


def test_a_job_that_was_being_stopped_stops_after_a_kill(cloud: Cloud) -> None:
    world = OpenPaiWorld(cloud)
    name = world.submitted(job("stubborn", "trap '' TERM; while :; do sleep 1; done", jobRetryCount=3))
    world.reaches(name, "RUNNING")
    assert world.ask("PUT", f"/api/v2/jobs/{name}/executionType", {"value": "STOP"}).status == 202
    kill(cloud)
    again = OpenPaiWorld(control.start_cloud(cloud.home))
    status = again.ended(name)["jobStatus"]
    assert (status["state"], status["executionType"], status["retries"]) == ("STOPPED", "STOP", 0)


def test_waiting_jobs_start_when_the_virtual_cluster_has_room(cloud: Cloud) -> None:
    world = OpenPaiWorld(cloud)
    admin.add_fault(cloud, kind="limit", limit="openpai.default.gpu", value=2)
    gang = world.submitted(job("gang", "echo together", role={**_WITH_GPU, "instances": 2}))
    world.ended(gang)
    admin.clear_faults(cloud)
    admin.add_fault(cloud, kind="limit", limit="openpai.default.gpu", value=1)
    # A gang needs room for all of its tasks. Other tasks run one after the other.
    refused = world.submit(job("large", role={**_WITH_GPU, "instances": 2}))
    assert (refused.status, refused.body["code"]) == (400, "InvalidProtocolError")
    assert "2 gpu, exceeds maximum 1 gpu in VC default" in refused.body["message"]
    both = {**_WITH_GPU, "instances": 2, "completion": {"minFailedInstances": 1, "minSucceededInstances": 2}}
    turns = world.submitted(job("turns", "sleep 0.2", role=both, **_ALONE))
    detail = world.ended(turns)
    first, second = detail["taskRoles"]["worker"]["taskStatuses"]
    assert detail["jobStatus"]["state"] == "SUCCEEDED"
    assert first["completedTime"] <= second["launchedTime"]


def _everything_kept(cloud: Cloud) -> str:
    state = sqlite3.connect(f"file:{cloud.home / 'openpai' / 'state.sqlite3'}?mode=ro", uri=True)
    try:
        return "\n".join(state.iterdump())
    finally:
        state.close()


def _log(world: OpenPaiWorld, name: str) -> str:
    """What the first task printed in the job's first attempt."""
    path = f"/api/v2/jobs/{name}/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"
    answer = eventually(lambda: world.ask("GET", path), lambda found: found.status == 200)
    [uri] = [each["uri"] for each in answer.body["locations"] if each["name"] == "stdout"]
    with urllib.request.urlopen(world.cloud.endpoint + uri) as log:
        return str(log.read().decode())
