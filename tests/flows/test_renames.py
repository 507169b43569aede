# SPDX-License-Identifier: Apache-2.0
"""Renamed jobs and runs: a warning says what is lost, and `was:` keeps everything, even if records were deleted."""

from pathlib import Path
from typing import Any

import oci
import pytest

from tests.support.local_team import Team, summary

pytestmark = pytest.mark.engine

RUN, JOB = "trainyard:index:Run", "oci:DataScience/job:Job"


@pytest.mark.torture
def test_a_renamed_run_keeps_its_records_and_checkpoints(tmp_path: Path) -> None:
    team = Team(tmp_path)
    try:
        team.trainyard("up", "local")
        before = _ids(team)
        team.change("    line:\n", "    curve:\n")
        warned = team.trainyard("preview", "local")
        assert "renamed? job line is not in the stack file any more, and curve is new" in warned
        assert "deletes the job with the records of its 1 run" in warned
        assert "`was: line` under curve" in warned

        team.change("    curve:\n", "    curve:\n      was: line\n")
        team.change("base: { until: finished }", "best: { until: finished, was: base }")
        output = team.trainyard("up", "local")
        done = summary(output)
        assert "renamed?" not in output
        assert not {"created", "deleted", "replaced"} & set(done), output
        assert _ids(team) == before
        assert before[JOB] in (row.get("id") for row in team.resources() if row["urn"].endswith("::curve"))
        science = _science(team)
        run = science.get_job_run(before[RUN]).data
        assert run.display_name == "demo-local-curve-best"
        assert (run.freeform_tags["job"], run.freeform_tags["run"]) == ("curve", "best")
        assert "curve/best" in team.run("runs", "list", "local", "--local", "--stacks", str(team.stacks)).stdout

        # Deleted records do not start the training again.
        science.delete_job_run(before[RUN])
        told = team.on_stack("refresh", "--yes", "--skip-preview")
        assert "its records are gone; it stays SUCCEEDED" in told
        team.trainyard("preview", "local", "--expect-no-changes")
        assert _ids(team) == before

        # Without `was:`, the earlier name is lost. The output says what that means.
        team.change("      was: line\n", "")
        team.change(", was: base", "")
        lines = team.trainyard("preview", "local").splitlines()
        replaced = next(line for line in lines if "curve/best replace" in line)
        assert "TRAINYARD_LAUNCH.job: line -> curve" in replaced
    finally:
        team.end()


def _ids(team: Team) -> dict[str, str]:
    return {row["type"]: row["id"] for row in team.resources() if row["type"] in (RUN, JOB)}


def _science(team: Team) -> Any:
    cloud = team.cloud
    config = oci.config.from_file(str(cloud.config_file), "deployer")
    return oci.data_science.DataScienceClient(config, service_endpoint=cloud.endpoint)
