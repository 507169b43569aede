# SPDX-License-Identifier: Apache-2.0
"""Writes stack files with a given number of jobs and runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "stacks"
# By SDK: the example stack that is made larger.
EXAMPLES = {"oci": "Pulumi.oci-pytorch-ddp.yaml", "aws": "Pulumi.aws-dl1-resnet.yaml"}


def write(folder: Path, jobs: int, runs: int, sdk: str = "oci") -> Path:
    """A stack of `jobs` jobs with `runs` runs in all, two nodes each, every run with arguments of its own."""
    document = yaml.safe_load((FOLDER / EXAMPLES[sdk]).read_text("utf-8"))
    config = document["config"]
    (model,) = config["trainyard:jobs"].values()
    config["trainyard:jobs"] = {f"job-{index}": _job(model, runs // jobs) for index in range(jobs)}
    _code(folder, model["code"])
    file = folder / f"Pulumi.bench-{sdk}-{jobs}-{runs}.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return file


def _job(model: dict[str, Any], runs: int) -> dict[str, Any]:
    wanted = {f"run-{index}": {"args": ["--seed", str(index)]} for index in range(runs)}
    return {**model, "roles": {"main": 1, "worker": 1}, "runs": wanted}


def _code(folder: Path, named: str) -> None:
    """Writes the jobs' code, and a Pulumi.yaml, because code must be inside a project."""
    (folder / "Pulumi.yaml").touch()
    code = folder / named
    code.mkdir(parents=True, exist_ok=True)
    for script in (FOLDER / named).glob("*.py"):
        (code / script.name).write_bytes(script.read_bytes())
