# SPDX-License-Identifier: Apache-2.0
"""Jobs of OpenPAI become small enough for one machine, also if roles have their own SKU."""

from __future__ import annotations

from pathlib import Path

import yaml

from components.openpai.local.rehearsal import small_tasks
from components.plan.build import plan_of
from schemas.judge import judge_file
from tests.support.examples import stack_file
from trainyard.rehearsal.mapping import map_config
from trainyard.rehearsal.stack_files import prepare_stack

EXAMPLE = "openpai-parameter-server"


def test_the_skus_of_roles_become_small_too(tmp_path: Path) -> None:
    text = (
        stack_file(EXAMPLE)
        .read_text()
        .replace("cpus: 4, memoryGb: 16 }", "cpus: 4, memoryGb: 16, sku: K80, shmMb: 8192 }")
    )
    file = tmp_path / f"Pulumi.{EXAMPLE}.yaml"
    file.write_text(text.replace("code: ./examples/tensorflow-parameter-server", "code: ."))
    (tmp_path / "train.py").touch()
    plan = plan_of(judge_file(file))
    here = map_config(yaml.safe_load(file.read_text())["config"], plan, None, {}, small_tasks)
    small = {"gpus": 0, "cpus": 1, "memoryGb": 4, "shmMb": 1024}
    skus, job = here.config["trainyard:skus"], here.config["trainyard:jobs"]["recommend"]
    assert skus[job["shape"]] == small
    assert skus[job["roles"]["ps"]["shape"]] == {key: value for key, value in small.items() if key != "gpus"}
    assert skus["gpu1"]["sku"] == "K80", "other jobs may name the same SKU"
    assert "job recommend: a share of this machine stands in for each cpu4" in here.differences
    assert here.not_rehearsed["recommend"] == ["GPUs: this machine has none; it trains on CPUs"]
    file.write_text(yaml.safe_dump({"config": here.config}))
    assert judge_file(file).errors == ()


def test_a_shell_command_has_no_built_in_program(tmp_path: Path) -> None:
    """Its code is in the image, which is not here. A built-in program knows nothing of the job's variables."""
    written = yaml.safe_load(stack_file("openpai-as-is").read_text())
    jobs = written["config"]["trainyard:jobs"]
    for job in jobs.values():
        del job["code"]
    file = tmp_path / "Pulumi.as-is.yaml"
    file.write_text(yaml.safe_dump(written))
    made = prepare_stack(file, plan_of(judge_file(file)), tmp_path, None, False, small_tasks).mapped
    for name, job in jobs.items():
        assert made.config["trainyard:jobs"][name]["command"] == job["command"]
        assert "no built-in program can take the place" in made.not_rehearsed[name][-1]
    assert not (tmp_path / "stacks" / "code").exists()
