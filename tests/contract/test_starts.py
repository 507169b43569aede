# SPDX-License-Identifier: Apache-2.0
"""The launchers of a start, and the code that looks for its files, compute the same name of the start."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from components.oci.client import job_runs
from launcher.errors import LaunchError
from launcher.retries import in_start_folder, start_name
from localcloud.oci.ocids import fixed_ocid
from tests.support.documents import launch

MAIN, OTHER = (fixed_ocid("datasciencejobrun", name, "iad") for name in ("main", "other"))
BUCKET: Mapping[str, Any] = {"from": "bucket"}
GROUPS: Mapping[str, Any] = {"from": "cluster-metadata"}


@pytest.mark.parametrize(
    ("rank", "source", "own", "main"),
    [(0, BUCKET, MAIN, None), (1, BUCKET, OTHER, MAIN), (2, BUCKET, OTHER, MAIN), (0, GROUPS, MAIN, None)],
)
def test_launchers_and_readers_compute_the_same_name_of_a_start(
    rank: int, source: Mapping[str, Any], own: str, main: str | None
) -> None:
    """By what a job run's own configuration says of it, or by the main job run's OCID alone."""
    told = {job_runs.MAIN_VARIABLE: main} if main else {}
    by_launcher = start_name(launch(rank, {**told, "JOB_RUN_OCID": own}, peers=source))
    assert by_launcher == job_runs.start_of_job_run(own, told) == job_runs.start_of_job_run(MAIN, {})
    assert by_launcher
    assert MAIN.endswith(by_launcher), "people find the job run by it"


def test_every_node_group_uses_the_one_job_run() -> None:
    names = {start_name(launch(rank, {"JOB_RUN_OCID": MAIN}, peers=GROUPS)) for rank in range(3)}
    assert names == {job_runs.start_of_job_run(MAIN, {})}


def test_attempts_of_an_openpai_job_are_starts() -> None:
    def name(job: str, **attempt: str) -> str:
        return start_name(launch(1, {"PAI_JOB_NAME": job, **attempt}, peers={"from": "openpai"}))

    names = [name("ann~base-1f2e3d4c", FC_FRAMEWORK_ATTEMPT_ID=attempt) for attempt in ("0", "1")]
    assert names == ["base-1f2e3d4c-0", "base-1f2e3d4c-1"], "people find the job by it"
    longest = name(f"ann~{'x' * 240}-1f2e3d4c-2", FC_FRAMEWORK_ATTEMPT_ID="12")
    assert longest.endswith("x-1f2e3d4c-2-12")
    assert len(longest) < 80, "folders' names have less room than those of jobs"
    assert name("") == ""


def test_without_a_start_name_the_folder_is_that_of_the_attempt() -> None:
    alone = launch(0, {"JOB_RUN_OCID": MAIN}, peers={"from": "list", "addresses": ["a", "b", "c"]})
    assert in_start_folder(alone) == alone
    assert in_start_folder(launch(0, {"JOB_RUN_OCID": MAIN}, folder=None, checkpoints=None)).folder is None


@pytest.mark.parametrize(("rank", "environment"), [(0, {}), (1, {}), (1, {"JOB_RUN_OCID": OTHER})])
def test_a_node_that_cannot_distinguish_starts_reports_that(rank: int, environment: Mapping[str, str]) -> None:
    with pytest.raises(LaunchError, match="MAIN_JOB_RUN_OCID is not set, so this node could meet nodes of an earlier"):
        start_name(launch(rank, environment))


def test_the_folder_is_that_of_the_start() -> None:
    told = {job_runs.MAIN_VARIABLE: MAIN, "JOB_RUN_OCID": OTHER}
    node = launch(1, told, folder="oci://b@ns/job/run/2", checkpoints="oci://b@ns/job/run/checkpoints")
    found = in_start_folder(node)
    assert found.folder == f"oci://b@ns/job/run/2/{job_runs.start_of_job_run(MAIN, {})}"
    assert found.checkpoints == node.checkpoints, "starts share their checkpoints"
    assert json.dumps(found.options) == json.dumps(node.options)
