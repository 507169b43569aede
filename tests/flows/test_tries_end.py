# SPDX-License-Identifier: Apache-2.0
"""Running tries whose job is replaced or removed: every command reports them, ends them, and leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.local_team import summary
from tests.support.try_world import TryTeam, jobs, try_team
from tests.support.waiting import eventually

pytestmark = pytest.mark.engine


@pytest.fixture
def team(tmp_path: Path) -> Iterator[TryTeam]:
    wanted = jobs()
    with try_team(tmp_path, {"line": wanted["line"], "idle": wanted["idle"]}) as one:
        yield one


@pytest.mark.torture
def test_a_replaced_job_ends_its_tries_and_a_replaced_run_does_not(team: TryTeam) -> None:
    team.trainyard("up", "local")
    title = team.started("line", "--", "--wait")
    team.alive(title)

    team.change("- '0.1'", "- '0.2'")
    assert summary(team.trainyard("up", "local"))["replaced"] == 1
    assert team.states(title) == {"IN_PROGRESS"}, "only the run is another one"

    script = team.stacks / "local" / "train.py"
    script.write_text("print('new code')\n" + script.read_text())
    words = f"the job is replaced, which ends its tries: {title}"
    preview = team.trainyard("preview", "local")
    assert words in preview
    assert words in team.on_stack("preview"), "plain Pulumi says it as well"
    assert team.states(title) == {"IN_PROGRESS"}, "a preview ends nothing"

    up = team.trainyard("up", "local")
    assert words in up
    assert f"its tries end with it: {title}" in up
    assert "new code" in team.try_("line", "--follow").stdout


def test_down_lists_and_ends_the_tries_of_every_job(team: TryTeam) -> None:
    team.trainyard("up", "local")
    titles = [team.started(job, "--", "--wait") for job in ("line", "idle")]
    for title in titles:
        team.alive(title)
    down = team.trainyard("down", "local", "--yes")
    for title in titles:
        assert f"ends     {title}: IN_PROGRESS for" in down.partition("Destroying")[0]
    assert "Nothing is left" in down
    assert team.in_cloud() == []


@pytest.mark.torture
def test_pulumi_destroy_ends_the_tries_of_removed_jobs(team: TryTeam) -> None:
    team.trainyard("up", "local")
    title = team.started("line", "--", "--wait")
    (run,) = team.alive(title)
    objects = team.clients.storage
    for item in objects.list_objects(team.cloud.namespace, "demo-local-training").data.objects:
        objects.delete_object(team.cloud.namespace, "demo-local-training", item.name)
    said = team.on_stack("destroy", "--yes", "--skip-preview", "--target-dependents", *_jobs(team))
    assert f"its tries end with it: {title}" in said
    eventually(lambda: team.clients.data_science.get_job_run(run.id).data.lifecycle_state, lambda now: now == "DELETED")


def _jobs(team: TryTeam) -> list[str]:
    """Only the jobs: a bucket to which a try has just written cannot be deleted."""
    urns = [row["urn"] for row in team.resources() if row["type"] == "oci:DataScience/job:Job"]
    return [word for urn in urns for word in ("--target", urn)]
