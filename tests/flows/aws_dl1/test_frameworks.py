# SPDX-License-Identifier: Apache-2.0
"""Every framework trains on machines of AWS whose accelerators leave the choice: rehearsed with the code of OCI's
examples, on machines without an accelerator."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalog.environments import Need
from catalog.frameworks import framework_names, framework_row
from catalog.tables import table
from localcloud.environments.find import MissingEnvironment, find_environment_for
from tests.support.rehearsing import Rehearsals

pytestmark = pytest.mark.engine

TWO = {"roles": {"main": 1, "worker": 1}, "options": {}, "command": "train.py --epochs 1"}
# Framework and strategy -> an example for OCI, and how its job is made smaller.
JOBS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "accelerate": ("oci-accelerate", TWO),
    "dask": ("oci-dask-sklearn", {"command": "search.py --candidates 4"}),
    "horovod/pytorch": ("oci-horovod-pytorch", {**TWO, "options": {"elastic": True, "minNodes": 1, "maxNodes": 2}}),
    "horovod/tensorflow": ("oci-horovod-tensorflow", TWO),
    "lightning": ("oci-lightning", TWO),
    "pytorch": ("oci-pytorch-ddp", TWO),
    "ray": ("oci-ray", {**TWO, "roles": {"head": 1, "worker": 1}}),
    "tensorflow/mirrored": ("oci-tensorflow-mirrored", {"command": TWO["command"]}),
    "tensorflow/multi-worker-mirrored": ("oci-tensorflow-multi-worker", TWO),
    "tensorflow/parameter-server": (
        "oci-tensorflow-parameter-server",
        {**TWO, "roles": {"main": 1, "worker": 1, "ps": 1}},
    ),
    "torchrun": ("oci-torchrun", {**TWO, "options": {"elastic": True, "minNodes": 2}}),
}
ANY = {name for name, row in table("aws_accelerators").items() if "trains" not in row}


def strategies() -> set[str]:
    named = {name: framework_row(name, None).strategies for name in framework_names()}
    return {f"{name}/{strategy}" if strategy else name for name in named for strategy in (named[name] or [""])}


def test_every_framework_trains_where_accelerators_leave_the_choice() -> None:
    assert strategies() == JOBS.keys()
    assert {"nvidia", "none"} == ANY


@pytest.mark.torture
@pytest.mark.parametrize("name", sorted(JOBS))
def test_a_framework_trains_on_machines_of_aws(name: str, tmp_path: Path) -> None:
    framework, _, strategy = name.partition("/")
    if isinstance(find_environment_for(Need(framework, strategy or None)), MissingEnvironment):
        pytest.skip(f"no local environment for {name}")
    if not shutil.which("ssh-keygen"):
        pytest.skip("no ssh-keygen")
    rehearsals = Rehearsals.of_examples(tmp_path)
    example, smaller = JOBS[name]
    (rehearsals.stacks / "Pulumi.trains.yaml").write_text(yaml.safe_dump(on_aws(example, smaller)))
    report = rehearsals.report("trains", "--minutes", "15")
    assert report["verdict"] == "passed", json.dumps(report["runs"], indent=1)
    (run,) = report["runs"]
    assert all(rank["joined"] and rank["finished"] for rank in run["ranks"])
    assert rehearsals.left() == []


def on_aws(example: str, smaller: Mapping[str, Any]) -> dict[str, Any]:
    """An example's first job, with its first run, as a stack of AWS."""
    config = yaml.safe_load(Path(__file__).parents[3].joinpath(f"stacks/Pulumi.{example}.yaml").read_text())["config"]
    job_name, job = next(iter(config["trainyard:jobs"].items()))
    for key in ("layout", "inputs"):
        job.pop(key, None)
    run = next(iter(job["runs"]))
    job |= {**smaller, "shape": "c7i.4xlarge", "cluster": {"ami": "none"}, "runs": {run: {}}}
    return {
        "config": {
            "aws:region": "us-east-1",
            "trainyard:platform": "aws",
            "trainyard:team": "paper",
            "trainyard:environment": "dev",
            "trainyard:access": {"users": {"group": "scientists"}},
            "trainyard:network": {"cidr": "10.32.0.0/16"},
            "trainyard:bucket": {"name": "paper-trains"},
            "trainyard:registry": {"repository": "paper/trains"},
            "trainyard:jobs": {job_name: job},
        }
    }
