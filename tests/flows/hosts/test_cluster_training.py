# SPDX-License-Identifier: Apache-2.0
"""PyTorch really trains on two tasks of the local OpenPAI, each with its own ports: by a plain command, as OpenPAI's
own examples have it, and by the launcher."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from localcloud.openpai.tasks import TaskAttempt, TaskImage, TaskStorage
from tests.support.cluster_tasks import Reports, attempt_of, carried_out
from tests.support.documents import document

_TRAINS = """
import os, torch, torch.distributed as dist
assert os.environ["GLOO_SOCKET_IFNAME"] == "eth0"
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print("rank", dist.get_rank(), "of", dist.get_world_size(), "at", os.environ["MASTER_PORT"], "sum", int(total))
"""
# As OpenPAI's manual has it: the address and the port of the first task, by variables.
_PLAIN = f"""
export MASTER_ADDR=$PAI_HOST_IP_worker_0 MASTER_PORT=$PAI_worker_0_SynPort_PORT
export RANK=$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX WORLD_SIZE=$PAI_TASK_ROLE_TASK_COUNT_worker
export GLOO_SOCKET_IFNAME=eth0
python - <<'END'{_TRAINS}END
"""

_RESERVED = {"range": None, "pinned": "start-option", "reserved": 1}


def _gang(home: Path, roles: list[tuple[str, int]], label: str, **changes: Any) -> list[TaskAttempt]:
    """Tasks that know one another by variables of OpenPAI. Ports differ from task to task."""
    tasks = [(role, index) for role, count in roles for index in range(count)]
    known = {"PAI_JOB_NAME": "ann~train-1f2e3d4c", "FC_FRAMEWORK_ATTEMPT_ID": "0"}
    known |= {f"PAI_TASK_ROLE_TASK_COUNT_{role}": str(count) for role, count in roles}
    for number, (role, index) in enumerate(tasks):
        known[f"PAI_HOST_IP_{role}_{index}"] = f"10.151.0.{number + 10}"
        known[f"PAI_PORT_LIST_{role}_{index}_{label}"] = known[f"PAI_{role}_{index}_{label}_PORT"] = (
            f"{21000 + 7 * number}"
        )
    made = []
    for number, (role, index) in enumerate(tasks):
        own = {"PAI_CURRENT_TASK_ROLE_NAME": role, "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(index)}
        command = changes["command"] if isinstance(changes["command"], str) else changes["command"](role)
        own_changes = {**changes, "command": command}
        made.append(
            attempt_of(
                f"{role}-{index}", home, number=number + 1, role=role, index=index,
                environment={**known, **own}, **own_changes,
            )
        )  # fmt: skip
    return made


def test_a_plain_command_trains_as_in_openpais_own_examples(tmp_path: Path) -> None:
    image = TaskImage("openpai/standard:python_3.6-pytorch_1.2.0-gpu")
    tasks = _gang(tmp_path, [("worker", 2)], "SynPort", command=_PLAIN, image=image)
    ends = carried_out(tmp_path, Reports(), tasks)
    said = [(each.logs / "all").read_text() for each in tasks]
    assert [how.code for how in ends.values()] == [0, 0], (ends, said)
    assert [f"rank {rank} of 2 at 21000 sum 3" in text for rank, text in enumerate(said)] == [True, True], said


def test_the_launcher_trains_and_leaves_its_results_on_the_storage(tmp_path: Path) -> None:
    folder = tmp_path / "storages" / "data"
    folder.mkdir(parents=True)

    def command(role: str) -> str:
        told: dict[str, Any] = {
            "version": 5, "rank": None, "role": role, "peers": {"from": "openpai"},
            "ports": {"rendezvous": {**_RESERVED, "listens": role == "main"}},
            "folder": "file:///mnt/data/team/train/base/1", "checkpoints": "file:///mnt/data/team/train/base/checkpoints",
            "command": ["python", "train.py"], "retry": {"count": 0},
        }  # fmt: skip
        told["roles"] = [{**row, "replicas": 1} for row in document()["roles"]]
        written = document(0 if role == "main" else 1, **told)
        written["environment"] = {**written["environment"], "MASTER_PORT": "{port.rendezvous}"}
        saves = 'open(os.environ["TRAINYARD_OUTPUT"] + "/model", "w").write(str(int(total)))\n'
        return (
            f"cat > train.py <<'END'{_TRAINS}{saves}END\nexport TRAINYARD_LAUNCH='{json.dumps(written)}'\n"
            "exec python -m launcher"
        )

    shown = (TaskStorage("data", "/mnt/data", folder),)
    image = TaskImage("example.com/team/pytorch:1")
    tasks = _gang(tmp_path, [("main", 1), ("worker", 1)], "rendezvous", command=command, image=image, storages=shown)
    ends = carried_out(tmp_path, Reports(), tasks)
    said = [(each.logs / "all").read_text() for each in tasks]
    assert [how.code for how in ends.values()] == [0, 0], (ends, said)
    assert "rank 1 of 2 at 21000 sum 3" in said[1]
    start = folder / "team" / "train" / "base" / "1" / "train-1f2e3d4c-0"
    assert (start / "output" / "model").read_text() == (start / "output" / "rank-1" / "model").read_text() == "3"
    assert json.loads((start / "status" / "1.json").read_text())["address"] == "10.151.0.11"
