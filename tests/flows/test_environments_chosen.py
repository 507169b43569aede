# SPDX-License-Identifier: Apache-2.0
"""Jobs that do not get the first environment of their framework: by what the code imports, and by a requirement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.environments.find import MissingEnvironment, find_environment
from tests.support.local_team import Team

pytestmark = pytest.mark.engine

JOB = """\
      image: ${registry}:1.0
      shape: { name: VM.Standard.E4.Flex, ocpus: 1, memoryGb: 8 }
      maximumRuntimeMinutes: 60
      runs: { base: { until: finished } }
"""
FRAME = """\
import os
import dask.dataframe as dd
import pandas as pd

total = dd.from_pandas(pd.DataFrame({"n": range(10)}), npartitions=2).n.sum().compute(scheduler="sync")
print("summed", total, "in", os.environ["TRAINYARD_ENVIRONMENT"])
"""
OLDER = """\
import os
import torch

print("trained with torch", torch.__version__, "in", os.environ["TRAINYARD_ENVIRONMENT"])
"""


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """A team with a job on dask.dataframe and one that asks for an older PyTorch."""
    for name in ("dask-dataframe", "pytorch-1.13"):
        if isinstance(missing := find_environment(name), MissingEnvironment):
            pytest.skip(f"the environment {name}: {missing.reason}; {missing.remedy}")
    one = Team(tmp_path)
    jobs = {
        "frame": ("dask", "{ scheduler: 1, worker: 1 }", FRAME, ""),
        "older": ("pytorch", "{ main: 1 }", OLDER, "      requirements: ./older/requirements.txt\n"),
    }
    text = one.file.read_text().partition("    line:\n")[0]
    for name, (framework, roles, script, more) in jobs.items():
        (one.stacks / name).mkdir()
        (one.stacks / name / "train.py").write_text(script)
        text += f"    {name}:\n      framework: {framework}\n      roles: {roles}\n{more}{JOB}"
        text += f"      code: ./{name}\n      command: train.py\n"
    (one.stacks / "older" / "requirements.txt").write_text("torch<2\n")
    one.file.write_text(text)
    yield one
    one.end()


@pytest.mark.torture
def test_jobs_train_in_the_first_environment_that_satisfies_them(team: Team) -> None:
    said = "the environment `pytorch-1.13`, not `pytorch`, which does not meet `torch<2` (torch 2.6.0)"
    up = team.trainyard("up", "local")
    assert f"job older runs in {said}: ./older/requirements.txt" in up
    assert "summed 45 in dask-dataframe" in up
    assert "trained with torch 1.13" in up
    assert "in pytorch-1.13\n" in up
    assert f"here: job older runs in {said}" in team.trainyard("preview", "local")
