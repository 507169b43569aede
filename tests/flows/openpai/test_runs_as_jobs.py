# SPDX-License-Identifier: Apache-2.0
"""`trainyard:index:Run` on the local OpenPAI, through the provider protocol: runs are jobs, and really run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest.mock import patch

import pytest

from components.openpai.client.jobs import RELEASED, RunId
from components.platform.calls import call_of
from components.platform.inputs import with_defaults
from components.platform.runs import NodeRun, fingerprint_of_try, run_spec
from components.platform.values import Properties
from localcloud import control
from provider.runs.starting import RETRY_FAILED
from tests.support.cloud_fixture import kill
from tests.support.openpai_runs import RUN, RunsWorld, runs_world
from tests.support.provider_client import Failed, Resource
from tests.support.waiting import eventually

LONG = "sleep 3600"
# Each task prints its role and index, so that its lines can be recognised.
HELLO = 'echo "task $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX of $PAI_JOB_NAME, attempt $FC_FRAMEWORK_ATTEMPT_ID"'


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunsWorld]:
    with runs_world(tmp_path_factory.mktemp("openpai") / "cloud") as made:
        yield made


def _details(resource: Resource | None) -> str:
    assert resource is not None
    return "; ".join(node["details"] for node in resource.outputs["nodeRuns"])


def test_a_run_is_one_job(world: RunsWorld) -> None:
    inputs = world.inputs(HELLO, instances=2)
    made = world.engine.create(RUN, "first", inputs)
    assert made.outputs["state"] == "SUCCEEDED"
    assert made.outputs["startedAt"] <= made.outputs["finishedAt"]
    run = RunId.parse(made.id)
    assert run is not None
    assert (run.user, run.role, run.task) == ("deployer", "worker", 0)
    assert run.job.startswith("vision-dev-train-first-")
    assert not world.engine.diff(made, inputs).detailedDiff

    # A token may change, and a name: neither starts the run again.
    renamed = {**inputs, "token": world.tokens["user"], "displayName": "other", "tags": {**inputs["tags"], "run": "b"}}
    assert not [key for key, row in world.engine.diff(made, renamed).detailedDiff.items() if row.kind % 2]
    renamed["token"] = world.tokens["deployer"]
    updated = world.engine.update(made, renamed)
    refreshed = world.engine.refresh(updated)
    assert refreshed is not None
    assert (refreshed.inputs["displayName"], refreshed.inputs["tags"]["run"]) == ("other", "b")
    assert not world.engine.diff(refreshed, renamed).detailedDiff

    world.engine.delete(updated)
    assert RELEASED in world.job(made)["tags"]
    again = world.engine.create(RUN, "first", inputs)
    assert again.id == made.id.replace(run.job, f"{run.job}-2")
    world.engine.delete(again)


def test_an_interrupted_create_finds_its_job(world: RunsWorld) -> None:
    inputs = world.inputs(LONG, displayName="interrupted", until="accepted")
    made = world.engine.create(RUN, "interrupted", inputs)
    again = world.engine.create(RUN, "interrupted", inputs)
    assert again.id == made.id
    assert any("an interrupted attempt" in line for line in world.engine.heard.lines)
    started = world.engine.update(again, {**inputs, "until": "started"})
    assert started.outputs["state"] == "IN_PROGRESS"
    world.engine.delete(started)
    assert world.job(made)["jobStatus"]["state"] == "STOPPED"


def test_a_failed_job_reports_its_attempts_and_reason(world: RunsWorld) -> None:
    inputs = world.inputs(
        HELLO,
        "exit 3",
        displayName="failing",
        tags={"stack": "vision-dev", "job": "train", "run": "failing"},
        protocol={"jobRetryCount": 1},
    )
    with pytest.raises(Failed) as failed:
        world.engine.create(RUN, "failing", inputs)
    text = str(failed.value)
    assert "The run failing is FAILED: node worker-0: exit code" in text
    assert "attempt 2, 1 counted as retries" in text
    assert "task 0 of deployer~failing-" in text
    assert "attempt 1" in text.rpartition("task 0 of")[2]
    kept = failed.value.kept
    assert kept is not None
    (seen,) = world.look("failing").look()
    assert (seen.state, seen.attempt) == ("FAILED", 1)
    lines = list(world.look("failing").lines([seen], frozenset()))
    assert len(lines) == 1
    assert lines[0].startswith("[0 worker-0] task 0 of deployer~failing-")
    with patch.dict(os.environ, {RETRY_FAILED: "1"}):
        assert list(world.engine.diff(kept, inputs).replaces) == ["state"]
    world.engine.delete(kept)
    with pytest.raises(Failed) as again:
        world.engine.create(RUN, "failing", inputs)
    assert again.value.kept is not None
    assert again.value.kept.id != kept.id, "it was started again"
    world.engine.delete(again.value.kept)


def test_a_run_is_imported_by_its_id(world: RunsWorld) -> None:
    inputs = world.inputs(LONG, displayName="imported", until="started", protocol={"secrets": {"key": "a secret"}})
    made = world.engine.create(RUN, "imported", inputs)
    with patch.dict(os.environ, world.cloud.env_for("deployer")):
        seen = world.engine.import_(RUN, "imported", made.id)
    assert seen is not None
    assert seen.inputs["cluster"] == inputs["cluster"]
    assert seen.inputs["displayName"] == "imported"
    assert seen.outputs["state"] == "IN_PROGRESS"
    assert "a secret" not in str(seen)
    assert not [key for key, row in world.engine.diff(seen, inputs).detailedDiff.items() if row.kind % 2]
    world.engine.delete(made)


def test_a_run_is_listed_followed_and_cancelled(world: RunsWorld) -> None:
    tags = {"stack": "vision-dev", "job": "train", "run": "seen"}
    made = world.engine.create(
        RUN, "seen", world.inputs(HELLO, LONG, instances=2, until="started", displayName="seen", tags=tags)
    )
    look = world.look("seen")
    lines: list[str] = []

    def follow() -> list[str]:
        lines.extend(look.lines(look.look(), frozenset()))
        return sorted(lines)

    seen = eventually(follow, lambda seen: len(seen) >= 2)
    assert [line.partition(" of ")[0] for line in seen] == ["[0 worker-0] task 0", "[1 worker-1] task 1"]
    assert list(look.lines(look.look(), frozenset({1}))) != []
    look.cancel(look.look()[0])
    ended = eventually(look.look, lambda runs: runs[0].over)
    assert ended[0].state == "CANCELED"
    assert "stopped" in _details(world.engine.refresh(made))
    world.engine.delete(made)


def test_a_tasks_progress_bar_is_redrawn_while_it_moves(world: RunsWorld) -> None:
    """Without the launcher, the log ends with the unfinished line."""
    bar = "printf 'first\\n'; for step in $(seq 6000); do printf '\\r%s of many' $step; sleep 0.02; done"
    tags = {"stack": "vision-dev", "job": "train", "run": "bar"}
    made = world.engine.create(RUN, "bar", world.inputs(bar, until="started", displayName="bar", tags=tags))
    look, seen = world.look("bar"), set[str]()

    def follow() -> set[str]:
        assert not [line for line in look.lines(look.look(), frozenset()) if "of many" in line]
        seen.update(look.unfinished(frozenset()))
        return seen

    eventually(follow, lambda seen: len(seen) >= 3)
    assert not [line for line in seen if not re.fullmatch(r"\[0 \S+\] \d+ of many", line)]
    look.cancel(look.look()[0])
    eventually(look.look, lambda runs: runs[0].over)
    world.engine.delete(made)


def test_tries_of_the_same_job_end_with_the_run(world: RunsWorld) -> None:
    tags = {"stack": "vision-dev", "job": "liked", "run": "first"}
    inputs = world.inputs(LONG, displayName="liked", tags=tags, until="accepted")
    made = world.engine.create(RUN, "liked", inputs)
    platform, call = world.platform(), call_of("test", lambda line: None)
    spec = run_spec("try", with_defaults({**inputs, "tags": {**tags, "run": "a-try"}}))
    trial = replace(spec, fingerprint=fingerprint_of_try("first", spec.fingerprint))
    (node,) = platform.ensure(call, trial, ())
    assert [one.title for one in platform.tries(call, inputs, patiently=True)] == ["liked/a-try"]
    world.engine.delete(made)
    assert platform.observe(call, [node])[0].state == "CANCELED"


@pytest.mark.parametrize(
    ("changed", "cause", "remedy"),
    [
        (
            {"cluster": {"virtualCluster": "gold"}, "protocol": {"defaults": {"virtualCluster": "gold"}}},
            "gold",
            "default, reserved",
        ),
        ({"token": "a.b.c"}, "UnauthorizedUserError", "OPENPAI_TOKEN"),
        ({"cluster": {"user": "user"}}, "that of the user deployer", "Name the user"),
        ({"protocol": {"extras": {"storages": [{"name": "nowhere"}]}}}, "nowhere", "may use these storages"),
        ({"protocol": {"jobRetryCount": -2}}, "breaks OpenPAI's protocol", "trainyard check"),
    ],
)
def test_refusals_give_a_remedy(world: RunsWorld, changed: Properties, cause: str, remedy: str) -> None:
    inputs = world.inputs("true", **{key: value for key, value in changed.items() if key != "cluster"})
    inputs["cluster"] = {**inputs["cluster"], **changed.get("cluster", {})}
    with pytest.raises(Failed) as failed:
        world.engine.create(RUN, "refused", {**inputs, "displayName": "refused"})
    assert cause in str(failed.value)
    assert remedy in str(failed.value)
    assert world.tokens["deployer"] not in str(failed.value)


def test_a_missing_job_does_not_exist_for_the_provider(world: RunsWorld) -> None:
    gone = NodeRun("worker-0", "openpai/deployer~nothing-0123abcd/worker/0", "IN_PROGRESS")
    platform, call = world.platform(), call_of("test", lambda line: None)
    assert platform.observe(call, [gone])[0].state == "DELETED"
    assert platform.describe(call, gone.id) is None
    platform.cancel(call, [gone])
    platform.release(call, [gone])


def test_failed_tasks_within_the_completion_policy_are_no_failure(world: RunsWorld) -> None:
    command = '[ "$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX" = 0 ] || ' + LONG
    enough = {"completion": {"minFailedInstances": 1, "minSucceededInstances": 1}}
    made = world.engine.create(RUN, "enough", world.inputs(command, instances=2, role=enough, displayName="enough"))
    assert [node["state"] for node in made.outputs["nodeRuns"]] == ["SUCCEEDED", "SUCCEEDED"]
    world.engine.delete(made)


def test_a_run_survives_a_killed_cluster_and_the_lost_attempt_is_not_counted(world: RunsWorld) -> None:
    """The last test of this cloud, because it restarts the server."""
    command = f'[ "$FC_FRAMEWORK_ATTEMPT_ID" != 0 ] || {LONG}'
    inputs = world.inputs(command, displayName="killed", until="started")
    made = world.engine.create(RUN, "killed", inputs)
    kill(world.cloud)
    waiting = ThreadPoolExecutor(1).submit(world.engine.update, made, {**inputs, "until": "finished"})
    eventually(lambda: world.engine.heard.lines, lambda lines: any("trying again" in line for line in lines))
    control.start_cloud(world.cloud.home)
    ended = waiting.result()
    assert ended.outputs["state"] == "SUCCEEDED"
    status = world.job(ended)["jobStatus"]
    assert (status["retryDetails"]["user"], status["retries"] > 0) == (0, True)
    world.engine.delete(ended)
