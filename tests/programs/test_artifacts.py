# SPDX-License-Identifier: Apache-2.0
"""The path of an artifact is a property that replaces the job. So it must be the same from every checkout."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from components.runs import ARTIFACTS
from tests.support.examples import STACKS, stack_file
from tests.support.recorder.client import Client

IN_THE_TEAMS_REPOSITORY = "../team/.trainyard/artifacts"


@pytest.mark.parametrize(
    ("how", "place"),
    [
        ({}, ".trainyard/artifacts"),
        ({"variables": {ARTIFACTS: "elsewhere"}}, "elsewhere"),
        ({"locked": True}, IN_THE_TEAMS_REPOSITORY),
        ({"locked": True, "variables": {ARTIFACTS: "../ours"}}, "../ours"),
    ],
    ids=["beside the program", "where a variable says", "not in a release that many use", "the variable first"],
)
def test_artifacts_are_kept_in_the_same_place(client: Client, tmp_path: Path, how: dict[str, Any], place: str) -> None:
    team, release = tmp_path / "team", tmp_path / "release"
    shutil.copytree(STACKS / "examples", team / "examples")
    release.mkdir()
    (team / "Pulumi.yaml").touch()
    file = Path(shutil.copy(stack_file("oci-existing"), team))
    artifact = client.record(file, release, **how).one("Job").inputs["jobArtifact"]
    assert artifact.startswith(f"{place}/oci-existing/scores-")
    assert (release / artifact).is_file()


@pytest.mark.parametrize("stack", ["oci-existing", "openpai-ddp-gloo"])
def test_links_out_of_the_code_folder_are_reported(client: Client, tmp_path: Path, stack: str) -> None:
    """Otherwise, missing files would be noticed only when nodes train."""
    shutil.copytree(STACKS / "examples", tmp_path / "examples")
    for folder in (tmp_path / "examples").iterdir():
        (folder / "elsewhere").symlink_to("/etc")
    (tmp_path / "Pulumi.yaml").touch()
    file = Path(shutil.copy(stack_file(stack), tmp_path))
    (warning,) = client.record(file, tmp_path).warnings
    assert warning.endswith("links out of the code folder, or to folders, are left out: elsewhere")
