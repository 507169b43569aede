# SPDX-License-Identifier: Apache-2.0
"""What the scripts of tests/bring/oracle print under Slurm itself: `python -m tests.support.slurm_answers` runs them
there, and writes the answers to tests/contract/recorded."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.support.slurm_cluster import VERSION, SlurmCluster, fetched_slurm, slurm_cluster

SCRIPTS = sorted((Path(__file__).parents[1] / "bring" / "oracle").glob("*.sbatch"))
RECORDED = Path(__file__).parents[1] / "contract" / "recorded" / f"slurm-{VERSION}.json"
# Variables whose values are names, addresses, ports, process ids or numbers of the cluster itself.
OF_THE_PLACE = frozenset({
    "SLURM_ARRAY_JOB_ID", "SLURM_CONF", "SLURM_JOBID", "SLURM_JOB_GID", "SLURM_JOB_ID", "SLURM_JOB_PARTITION",
    "SLURM_JOB_UID", "SLURM_JOB_USER", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_SRUN_COMM_HOST", "SLURM_SRUN_COMM_PORT",
    "SLURM_STEP_LAUNCHER_PORT", "SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST", "SLURM_TASK_PID", "SLURM_UMASK",
    "SLURM_WORKING_CLUSTER",
})  # fmt: skip
_LIST = re.compile(r"node\[(\d+)-(\d+)\]")
_PRINTED = re.compile(r"(?:batch|task\d+) (\w+)=|host |step |code \d")


def comparable_lines(lines: Iterable[str], nodes: Sequence[str]) -> list[str]:
    """What a script printed, without what differs between two clusters: the n-th node is `<n>`."""
    found = set()
    for line in lines:
        match = _PRINTED.match(line)
        if not match:
            continue
        if match[1] in OF_THE_PLACE:
            line = match[0]
        line = _LIST.sub(lambda span: ",".join(f"node{n}" for n in range(int(span[1]), int(span[2]) + 1)), line)
        for number, name in enumerate(nodes):
            line = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", f"<{number}>", line)
        found.add(line)
    return sorted(found)


def live_answers(cluster: SlurmCluster, folder: Path) -> Mapping[str, list[str]]:
    """Runs every script in the cluster."""
    answers = {}
    for script in SCRIPTS:
        shutil.copy(script, folder)
        text = cluster.run_script(folder / script.name)
        answers[script.name] = comparable_lines(text.splitlines(), [f"node{number}" for number in (1, 2, 3)])
    return answers


def recorded_answers() -> Mapping[str, list[str]]:
    answers: Mapping[str, list[str]] = json.loads(RECORDED.read_text("utf-8"))
    return answers


def main() -> None:
    packages = fetched_slurm(may_fetch=True)
    assert packages is not None
    with tempfile.TemporaryDirectory() as folder, slurm_cluster(packages, Path(folder, "cluster")) as cluster:
        answers = live_answers(cluster, Path(folder))
    RECORDED.write_text(json.dumps(answers, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
