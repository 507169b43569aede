# SPDX-License-Identifier: Apache-2.0
"""Scripts and jobs of other systems become stacks, and run as they did there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.bringing import converted_nodes
from tests.support.slurm_answers import (
    SCRIPTS,
    comparable_lines,
    live_answers,
    recorded_answers,
)
from tests.support.slurm_cluster import fetched_slurm, slurm_cluster

_RUNS = {"array": "array-task-3"}


@pytest.mark.parametrize(
    "script", [pytest.param(one, id=one.stem, marks=() if one.stem == "gang" else pytest.mark.torture) for one in SCRIPTS]
)
def test_a_batch_script_sees_what_it_saw_under_slurm(script: Path, tmp_path: Path) -> None:
    """Every variable of the batch part and of every task, the layout of many steps, and the codes of a failing one."""
    shutil.copy(script, tmp_path)
    name = {"plain": "plain-one", "gang": "gang"}.get(script.stem, script.stem + "-sbatch")
    with converted_nodes(tmp_path, [script.name], name, _RUNS.get(script.stem, "base")) as run:
        assert run.start().codes() == [0] * len(run.documents), run.shown()
        everyone = [run.address(rank) for rank in range(len(run.documents))]
        printed = {rank: run.launchers[rank].text.splitlines() for rank in run.launchers}
    plain = {rank: [line.partition("] ")[2] for line in lines] for rank, lines in printed.items()}
    expected = recorded_answers()[script.name]
    whole = comparable_lines((line for lines in plain.values() for line in lines), everyone)
    # Each node has the code of its own tasks.
    assert [line for line in whole if not line.startswith("code")] == [
        line for line in expected if not line.startswith("code")
    ]
    assert [line for line in expected if line.startswith("code")] == max(
        ([line for line in whole if line.startswith("code")][-1:], [])
    )
    for lines in plain.values():
        of_node = [line for line in comparable_lines(lines, everyone) if line.startswith(("batch", "host"))]
        assert of_node == [line for line in expected if line.startswith(("batch", "host"))]


@pytest.mark.torture
def test_slurm_itself_still_answers_as_recorded(tmp_path: Path) -> None:
    packages = fetched_slurm(may_fetch=True)
    assert packages is not None
    with slurm_cluster(packages, tmp_path / "cluster") as cluster:
        assert live_answers(cluster, tmp_path) == recorded_answers()
