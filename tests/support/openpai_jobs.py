# SPDX-License-Identifier: Apache-2.0
"""Jobs of the protocol for stacks on OpenPAI, whose commands bash runs as a task's runtime would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from components.openpai.job import protocol_of, protocol_to_check
from components.openpai.plan import OpenPaiPlan, openpai_plan
from components.openpai.protocol import controller_name, protocol_problems, task_command, with_secrets
from components.openpai.run_inputs import read_files
from components.plan.build import plan_of
from schemas.judge import Judged, judge_config

CONFIG: dict[str, Any] = {
    "platform": "openpai",
    "team": "vision",
    "environment": "dev",
    "cluster": {"uri": "https://openpai.example.com", "user": "vision-bot"},
    "skus": {"gpu2": {"gpus": 2, "cpus": 8, "memoryGb": 16}},
    "storage": {"name": "vision-nfs"},
}
JOB: dict[str, Any] = {
    "framework": "pytorch",
    "image": "registry.example.com/train:1.0",
    "shape": "gpu2",
    "roles": {"main": 1, "worker": 2},
    "command": "train.py",
    "runs": {"base": {}},
}
# The lines that the runtime puts before a command.
_STRICT = "set -o errexit\nset -o nounset\nset -o pipefail\n"

# A cluster searches the text of the job for secrets: from the line that begins with this key to the next key.
_SECRETS = re.compile(r"^(secrets:).*?(?=^\w|\Z)", re.MULTILINE | re.DOTALL)


def as_shown_by_a_cluster(text: str) -> str:
    """The text of a job as a cluster shows it to all users."""
    return _SECRETS.sub(r'\1 "******"\n', text)


def judged_stack(folder: Path, job: Mapping[str, Any], **keys: Any) -> Judged:
    """A stack with one job, as the program reads it. `{secure: text}` is a secret with that text."""
    own = {key: value for key, value in {**CONFIG, **keys}.items() if value is not None}
    config = {f"trainyard:{key}": value for key, value in {**own, "jobs": {"train": {**JOB, **job}}}.items()}
    file = folder / "Pulumi.own.yaml"
    file.write_text(yaml.safe_dump({"config": config}))
    opened = {key: _opened(value) for key, value in config.items()}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in opened.items()}
    return judge_config(texts, [key for key, value in config.items() if opened[key] != value], "own", file)


def planned(folder: Path, job: Mapping[str, Any], **keys: Any) -> OpenPaiPlan:
    return openpai_plan(plan_of(judged_stack(folder, job, **keys)))


def job_of(folder: Path, job: Mapping[str, Any], **keys: Any) -> dict[str, Any]:
    """The job that would be submitted for the first run."""
    plan = planned(folder, job, **keys)
    own = plan.jobs["train"]
    run = next(iter(own.runs.values()))
    made = protocol_to_check(protocol_of(plan, own, run, read_files(plan, own, folder).code), run)
    assert protocol_problems(made) == []
    return made


def variables(job: Mapping[str, Any], role: str, index: int) -> dict[str, str]:
    """The variables that OpenPAI sets for a task. Each task has the address 127.0.<role>.<index>."""
    known = {
        "PAI_JOB_NAME": f"vision-bot~{job['name']}",
        "PAI_CURRENT_TASK_ROLE_NAME": role,
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(index),
        "PAI_TASK_INDEX": str(index),
        "FC_FRAMEWORK_ATTEMPT_ID": "0",
    }
    for number, (name, row) in enumerate(job["taskRoles"].items()):
        short = controller_name(name)
        for task in range(row["instances"]):
            known[f"PAI_HOST_IP_{short}_{task}"] = "127.0.0.1"
            for place, label in enumerate(row["resourcePerInstance"].get("ports", ())):
                port = str(20000 + 1000 * number + 10 * task + place)
                known[f"PAI_PORT_LIST_{short}_{task}_{label}"] = known[f"PAI_{short}_{task}_{label}_PORT"] = port
    return known


def carry_out(
    job: Mapping[str, Any], role: str, index: int, folder: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    """Runs the command of one task. This interpreter is the image's Python."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    python = folder / "bin" / "python"
    if not python.exists():
        python.symlink_to(sys.executable)
    # A folder of the test is the task's storage.
    command = with_secrets(task_command(job, role), job.get("secrets")).replace("/mnt/vision-nfs", str(folder / "nfs"))
    environment = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder), "TMPDIR": str(folder)}
    return subprocess.run(
        ["bash", "-c", _STRICT + command],
        env={**environment, **variables(job, role, index), **more},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _opened(value: Any) -> Any:
    if isinstance(value, dict):
        return value["secure"] if set(value) == {"secure"} else {key: _opened(item) for key, item in value.items()}
    return [_opened(item) for item in value] if isinstance(value, list) else value
