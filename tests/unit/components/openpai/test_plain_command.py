# SPDX-License-Identifier: Apache-2.0
"""Stacks with features that users of OpenPAI know: their own roles and port labels, a SKU for each role, shared memory,
priority, pinned cells. Tests the protocol of a stack file, and runs the command in bash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from components.openpai.job import protocol_of, protocol_to_check
from components.openpai.protocol import protocol_problems
from components.plan.show import plan_text
from schemas.findings import Finding
from tests.support.openpai_jobs import carry_out, job_of, judged_stack, planned

# The variables by which programs of OpenPAI's examples find one another.
PROGRAM = """\
import json, os, sys
os.environ["MASTER_ADDR"] = os.environ["PAI_HOST_IP_worker_0"]
os.environ["MASTER_PORT"] = os.environ["PAI_worker_0_SynPort_PORT"]
rank = int(os.environ["PAI_TASK_INDEX"]) * 2 + 1
names = ("MASTER_ADDR", "MASTER_PORT", "PAI_CURRENT_TASK_ROLE_NAME", "GLOO_SOCKET_IFNAME", "TRAINYARD_OUTPUT")
print(json.dumps([rank, sys.argv[1:], {name: os.environ[name] for name in names}]))
"""
WORKERS = {"worker": {"replicas": 2, "ports": {"SynPort": 1}}}
COMMAND = """\
export GLOO_SOCKET_IFNAME=eth0
for number in 1 2; do echo "$number {not a placeholder} it's ${HOME:+set}" >&2; done
python train.py -n 2 --lr <% $parameters.lr %> --index $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX
"""


def as_is(folder: Path, **more: Any) -> dict[str, Any]:
    code = folder / "code"
    code.mkdir(exist_ok=True)
    (code / "train.py").write_text(PROGRAM)
    job = {"start": "as-is", "roles": WORKERS, "code": "./code", "command": COMMAND, "parameters": {"lr": "0.1"}}
    return {**job, **more}


def findings(folder: Path, job: dict[str, Any], **keys: Any) -> list[Finding]:
    return list(judged_stack(folder, job, **keys).findings)


def test_a_program_of_openpai_runs_unchanged(tmp_path: Path) -> None:
    spec = as_is(tmp_path, runs={"base": {"args": ["--text", "it's <% $HOME"]}})
    assert findings(tmp_path, spec) == []
    job = job_of(tmp_path, spec)
    (role,) = job["taskRoles"].values()
    assert (role["instances"], role["resourcePerInstance"]["ports"]) == (2, {"SynPort": 1})
    assert job["extras"].get("gangAllocation", True) is True
    done = carry_out(job, "worker", 1, tmp_path)
    assert done.returncode == 0, done.stderr
    rank, words, told = json.loads(done.stdout)
    assert rank == 3
    assert words == ["-n", "2", "--lr", "0.1", "--index", "1", "--text", "it's <% $HOME"]
    assert told["MASTER_PORT"] == "20000"
    assert (told["PAI_CURRENT_TASK_ROLE_NAME"], told["GLOO_SOCKET_IFNAME"]) == ("worker", "eth0")
    assert told["TRAINYARD_OUTPUT"].endswith("/output/rank-1")
    assert done.stderr.splitlines() == [f"{number} {{not a placeholder}} it's set" for number in (1, 2)]


def test_the_first_command_that_fails_ends_a_task(tmp_path: Path) -> None:
    job = job_of(tmp_path, as_is(tmp_path, command="echo first\nfalse | cat\necho never"))
    done = carry_out(job, "worker", 0, tmp_path)
    assert (done.returncode, done.stdout) == (1, "first\n")


def test_a_time_limit_is_a_failure_that_counts(tmp_path: Path) -> None:
    """OpenPAI retries 137 forever, so a program that the time limit had to kill ends with 124."""
    job = job_of(tmp_path, as_is(tmp_path, command="trap '' TERM\nwhile true; do sleep 0.1; done"))
    commands = job["taskRoles"]["worker"]["commands"]
    short = {"--kill-after=60 1440m": "--kill-after=0.1 1", "SECONDS + 86400": "SECONDS + 1"}
    for number, command in enumerate(commands):
        for long, now in short.items():
            commands[number] = command = command.replace(long, now)
    assert carry_out(job, "worker", 0, tmp_path).returncode == 124


def test_roles_have_commands_ports_and_names_of_their_own(tmp_path: Path) -> None:
    roles = {
        "ps_server": {"replicas": 1, "ports": {"http": 1, "data": 3}, "command": "echo of $PAI_CURRENT_TASK_ROLE_NAME"},
        "Worker": {"replicas": 3},
    }
    spec = as_is(tmp_path, roles=roles, command="echo ${PAI_HOST_IP_psserver_0}:${PAI_psserver_0_data_PORT}")
    assert findings(tmp_path, spec) == []
    job = job_of(tmp_path, spec)
    assert job["taskRoles"]["ps_server"]["resourcePerInstance"]["ports"] == {"http": 1, "data": 3}
    assert "ports" not in job["taskRoles"]["Worker"]["resourcePerInstance"]
    assert carry_out(job, "ps_server", 0, tmp_path).stdout == "of ps_server\n"
    assert carry_out(job, "Worker", 2, tmp_path).stdout == "127.0.0.1:20001\n"


def test_a_wrong_place_of_labels_says_the_right_one(tmp_path: Path) -> None:
    found = findings(tmp_path, as_is(tmp_path, roles={"worker": 2}, ports={"SynPort": 1}))
    assert {one.code for one in found} == {"TY201", "TY887"}
    assert any("give a role `ports: { SynPort: 1 }`" in one.remedy for one in found)


def test_a_command_may_not_use_what_openpai_does_not_know(tmp_path: Path) -> None:
    own = planned(tmp_path, as_is(tmp_path, parameters={}))
    job, run = own.jobs["train"], own.jobs["train"].runs["base"]
    (one,) = protocol_problems(protocol_to_check(protocol_of(own, job, run, None), run))
    assert "nothing is called `$parameters.lr`" in str(one)


SKUS = {
    "gpu2": {"gpus": 2, "cpus": 8, "memoryGb": 16, "sku": "V100", "shmMb": 8192, "infiniband": True},
    "cpu4": {"cpus": 4, "memoryGb": 8, "pinnedCellId": "VC1-CPU"},
    "any": {"cpus": 1, "memoryGb": 1},
}
SERVERS = {"framework": "tensorflow", "strategy": "parameter-server"}


def test_each_role_gets_its_own_sku(tmp_path: Path) -> None:
    roles = {"main": {"replicas": 1, "shape": "any"}, "worker": 2, "ps": {"replicas": 1, "shape": "cpu4"}}
    spec = {**SERVERS, "roles": roles, "jobPriorityClass": "prod"}
    assert findings(tmp_path, spec, skus=SKUS) == []
    job = job_of(tmp_path, spec, skus=SKUS)
    made = {
        name: (
            row["resourcePerInstance"]["gpu"],
            row["resourcePerInstance"]["memoryMB"],
            row.get("extraContainerOptions"),
        )
        for name, row in job["taskRoles"].items()
    }
    assert made == {
        "main": (0, 1024, None), "worker": (2, 16384, {"shmMB": 8192, "infiniband": True}), "ps": (0, 8192, None),
    }  # fmt: skip
    assert job["extras"]["hivedScheduler"] == {
        "jobPriorityClass": "prod",
        "taskRoles": {
            "worker": {"skuType": "V100", "skuNum": 2}, "ps": {"pinnedCellId": "VC1-CPU", "skuNum": 1},
        },
    }  # fmt: skip


def test_a_priority_needs_no_sku(tmp_path: Path) -> None:
    assert job_of(tmp_path, {"jobPriorityClass": "oppo"})["extras"]["hivedScheduler"] == {"jobPriorityClass": "oppo"}


def test_nccl_needs_gpus_in_every_role(tmp_path: Path) -> None:
    roles = {"main": 1, "worker": {"replicas": 1, "shape": "any"}}
    (one,) = findings(tmp_path, {"roles": roles, "options": {"backend": "nccl"}}, skus=SKUS)
    assert (one.code, "`any` has none" in one.message) == ("TY889", True)


def test_the_plan_says_what_tasks_get_and_no_disk_that_openpai_lacks(tmp_path: Path) -> None:
    roles = {"main": 1, "worker": 1, "ps": {"replicas": 1, "shape": "cpu4"}}
    text = plan_text(planned(tmp_path, {**SERVERS, "roles": roles, "jobPriorityClass": "test"}, skus=SKUS))
    assert "block storage" not in text
    assert "each task of ps      0 GPUs, 4 processors, 8 GB, in the cell VC1-CPU" in text
    assert "2 GPUs, 8 processors, 16 GB, 8192 MB of it shared memory, InfiniBand, of V100" in text
    assert "priority             test" in text
