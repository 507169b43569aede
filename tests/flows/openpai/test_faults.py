# SPDX-License-Identifier: Apache-2.0
"""With a cluster that is busy, fails, drops connections or is killed, a run is still exactly one job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from localcloud import admin, control
from localcloud.control import Cloud
from tests.support.cloud_fixture import kill
from tests.support.openpai_runs import openpai_engine, run_inputs
from tests.support.openpai_world import USER, OpenPaiWorld
from tests.support.provider_client import EngineSide, Resource
from tests.support.waiting import eventually

RUN = "trainyard:index:Run"
# The calls for a run, by the local cluster's names.
CALLS = ("SubmitJob", "GetJob", "GetJobConfig", "ListJobs", "ExecuteJob", "AddTag", "DeleteTag")


@pytest.fixture
def engine() -> Iterator[EngineSide]:
    with openpai_engine() as engine:
        yield engine


def jobs_of(world: OpenPaiWorld, name: str) -> list[Mapping[str, Any]]:
    rows = world.ask("GET", f"/api/v2/jobs?username={USER}&keyword={name}").body
    return [row for row in rows if row["name"].startswith(f"{name}-")]


def struck(world: OpenPaiWorld, call: str) -> list[int]:
    """How often each fault of a call was injected."""
    return [fault["done"] for fault in admin.list_faults(world.cloud) if fault["operations"] == f"openpai.{call}"]


@pytest.mark.parametrize(
    "faults",
    [
        ({"kind": "status", "status": 429}, {"kind": "status", "status": 503}),
        ({"kind": "drop"}, {"kind": "lost-answer"}),
    ],
    ids=["refusals", "connections"],
)
def test_a_run_is_one_job_despite_faults_of_the_cluster(
    faults: tuple[dict[str, Any], ...], shared_cloud: Cloud, engine: EngineSide
) -> None:
    """Each call gets a busy response and an error, and its connection ends before the call and after it."""
    world, name = OpenPaiWorld(shared_cloud), faults[0]["kind"]
    for call in CALLS:
        for fault in faults:
            admin.add_fault(shared_cloud, operations=f"openpai.{call}", times=1, **fault)
    made = engine.create(RUN, name, run_inputs(world, name))
    assert made.outputs["state"] == "SUCCEEDED"
    long = engine.create(RUN, f"long-{name}", run_inputs(world, f"long-{name}", "sleep 3600", until="started"))
    engine.delete(long)
    engine.delete(made)
    for call in ("SubmitJob", "GetJob", "ExecuteJob", "AddTag"):
        assert struck(world, call) == [1] * len(faults), call
    admin.clear_faults(shared_cloud)
    assert [row["state"] for row in jobs_of(world, name)] == ["SUCCEEDED"]
    assert [row["state"] for row in jobs_of(world, f"long-{name}")] == ["STOPPED"]


def test_a_restarted_cluster_has_its_jobs(shared_cloud: Cloud, engine: EngineSide) -> None:
    world = OpenPaiWorld(shared_cloud)
    made = engine.create(RUN, "kept", run_inputs(world, "kept", "sleep 3600", until="started"))
    [before] = jobs_of(world, "kept")
    kill(shared_cloud)
    assert control.start_cloud(shared_cloud.home).endpoint == shared_cloud.endpoint
    # Its task was lost with its host. That is a failure of the machine, which is retried and not counted.
    again = eventually(lambda: engine.refresh(made), lambda seen: _state(seen) == "IN_PROGRESS")
    assert again is not None
    [after] = jobs_of(world, "kept")
    assert (after["name"], after["state"], after["retryDetails"]["user"]) == (before["name"], "RUNNING", 0)
    engine.delete(again)
    assert [row["state"] for row in jobs_of(world, "kept")] == ["STOPPED"]


def _state(seen: Resource | None) -> str:
    return seen.outputs["state"] if seen else ""
