# SPDX-License-Identifier: Apache-2.0
"""The commands of tasks, run by bash: rank, addresses, ports, code, secrets, and exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from localcloud.environments.layout import interpreter_layout
from localcloud.hosts import images
from tests.support.openpai_jobs import carry_out, job_of

SHOWS = """\
import json, os, sys
names = sys.argv[1].split(",")
line = json.dumps([sys.argv[2:], {name: os.environ.get(name) for name in names}])
os.write(1, (line + chr(10)).encode())
"""
DDP = "MASTER_ADDR,MASTER_PORT,RANK,LOCAL_RANK,WORLD_SIZE,NODE_RANK,GLOO_SOCKET_IFNAME,TRAINYARD_OUTPUT"
# Letters that end a quotation, begin an expansion or a reference, or get lost at an end.
HOSTILE = "a'b\"c$(touch x)`touch x`\\ <% $secrets.x %> <%# y %> \n\ttwo \n"


def with_code(folder: Path, script: str, **job: Any) -> dict[str, Any]:
    code = folder / "code"
    code.mkdir(exist_ok=True)
    (code / "train.py").write_text(script)
    return job_of(folder, {"code": "./code", "start": "plain", **job})


def shown(text: str) -> list[list[Any]]:
    return [json.loads(line) for line in sorted(text.splitlines(), key=lambda line: line.partition("LOCAL_RANK")[2])]


def test_a_plain_task_gets_rank_addresses_and_ports(tmp_path: Path) -> None:
    job = with_code(tmp_path, SHOWS, command=f"train.py {DDP} --rank {{rank}}", options={"processes": 2})
    done = carry_out(job, "worker", 1, tmp_path)
    assert done.returncode == 0, done.stderr
    for local, (words, told) in enumerate(shown(done.stdout)):
        assert words == ["--rank", "2"]
        assert told == {
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "20000", "RANK": str(4 + local), "LOCAL_RANK": str(local),
            "WORLD_SIZE": "6", "NODE_RANK": "2", "GLOO_SOCKET_IFNAME": "lo",
            "TRAINYARD_OUTPUT": f"{tmp_path}/nfs/vision/dev/train/base/1/{job['name'][-60:]}-0/output/rank-2",
        }  # fmt: skip
        assert Path(told["TRAINYARD_OUTPUT"]).is_dir()


def test_the_log_begins_with_the_programs_output(tmp_path: Path) -> None:
    """Without `-W ignore`, Python 3.12 and later would print a warning above the output."""
    job = with_code(tmp_path, SHOWS, command="train.py RANK")
    (unpacks,) = [line for line in job["taskRoles"]["main"]["commands"] if "TRAINYARD_CODE" in line]
    assert unpacks.startswith('"$trainyard_python" -I -W ignore -c ')
    assert carry_out(job, "main", 0, tmp_path).stderr == ""


def test_the_first_failure_of_a_process_ends_the_others(tmp_path: Path) -> None:
    script = "import os, sys, time\nsys.exit(7) if os.environ['LOCAL_RANK'] == '1' else time.sleep(600)\n"
    job = with_code(tmp_path, script, options={"processes": 3})
    assert carry_out(job, "main", 0, tmp_path).returncode == 7


def test_the_only_process_decides_the_tasks_exit_code(tmp_path: Path) -> None:
    job = with_code(tmp_path, "raise SystemExit(3)\n")
    assert carry_out(job, "main", 0, tmp_path).returncode == 3


IGNORES = """\
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    signal.pause()
"""
DIES = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(("script", "code"), [(IGNORES, 124), (DIES, 137)])
def test_a_time_limit_that_had_to_kill_is_reported_as_a_timeout(
    processes: int, script: str, code: int, tmp_path: Path
) -> None:
    """OpenPAI retries a killed task without counting it. A run that exceeded its limit would be retried forever."""
    job = with_code(tmp_path, script, options={"processes": processes}, maximumRuntimeMinutes=30)
    commands = job["taskRoles"]["main"]["commands"]
    # A limit of one second, with a kill after another second. A limit of 30 minutes must not end it.
    shorter = {"timeout --kill-after=60 30m": "timeout --kill-after=1 1s", "SECONDS + 1800)": "SECONDS + 1)"}
    for long, short in shorter.items() if script == IGNORES else ():
        assert any(long in command for command in commands)
        commands[:] = [command.replace(long, short) for command in commands]
    assert carry_out(job, "main", 0, tmp_path).returncode == code


@pytest.mark.parametrize(
    ("role", "index", "task"), [("main", 0, "chief 0"), ("worker", 1, "worker 1"), ("ps", 0, "ps 0")]
)
def test_tensorflow_gets_its_cluster_description(role: str, index: int, task: str, tmp_path: Path) -> None:
    job = with_code(
        tmp_path, SHOWS, framework="tensorflow", strategy="parameter-server", command="train.py TF_CONFIG",
        roles={"main": 1, "worker": 2, "ps": 1},
    )  # fmt: skip
    done = carry_out(job, role, index, tmp_path)
    ((_, told),) = shown(done.stdout)
    described = json.loads(told["TF_CONFIG"])
    assert described["task"] == {"type": task.split()[0], "index": int(task.split()[1])}
    assert described["cluster"] == {
        "chief": ["127.0.0.1:21000"],
        "worker": ["127.0.0.1:21000", "127.0.0.1:21010"],
        "ps": ["127.0.0.1:22000"],
    }


def test_special_characters_in_secrets_and_variables_reach_the_program_unchanged(tmp_path: Path) -> None:
    env = {"PLAIN": HOSTILE, "SECRET": {"secure": HOSTILE}, "EMPTY": "", "LIMIT": "<%"}
    run = {"args": ["--text", HOSTILE], "env": {"OWN": {"secure": "of the run"}}}
    job = with_code(
        tmp_path, SHOWS, command="train.py PLAIN,SECRET,EMPTY,LIMIT,OWN,epochs,notes", env=env,
        runs={"base": run}, parameters={"epochs": "10 $(touch x) 'and' \"more\"", "notes": "one\r\ntwo\n\n"},
    )  # fmt: skip
    assert HOSTILE not in json.dumps(job["secrets"])
    done = carry_out(job, "main", 0, tmp_path)
    assert done.returncode == 0, done.stderr
    ((words, told),) = shown(done.stdout)
    assert words == ["--text", HOSTILE]
    assert told == {
        "PLAIN": HOSTILE, "SECRET": HOSTILE, "EMPTY": "", "LIMIT": "<%", "OWN": "of the run",
        "epochs": "10 $(touch x) 'and' \"more\"", "notes": "one\r\ntwo\n\n",
    }  # fmt: skip
    assert not list(tmp_path.rglob("x"))


def test_roles_may_have_different_secrets_under_one_name(tmp_path: Path) -> None:
    roles = {"main": 1, "worker": {"replicas": 1, "env": {"KEY": {"secure": "of the worker"}}}}
    job = with_code(tmp_path, SHOWS, command="train.py KEY", env={"KEY": {"secure": "of all"}}, roles=roles)
    told = [shown(carry_out(job, role, 0, tmp_path).stdout)[0][1]["KEY"] for role in ("main", "worker")]
    assert told == ["of all", "of the worker"]


def test_the_launcher_gets_its_document_and_the_code(tmp_path: Path) -> None:
    stand_in = tmp_path / "stand-in" / "launcher"
    stand_in.mkdir(parents=True)
    (stand_in / "__main__.py").write_text(
        "import json, os\nprint(json.dumps([sorted(os.listdir()), json.loads(os.environ['TRAINYARD_LAUNCH'])]))\n"
    )
    images.write_python(tmp_path, Path(sys.executable), interpreter_layout(Path(sys.executable)), str(stand_in.parent))
    runs = {"base": {"args": ["--text", "it's <% $secrets.x %>"]}}
    job = with_code(tmp_path, "", start="launcher", runs=runs, env={"KEY": {"secure": "x"}})
    done = carry_out(job, "worker", 0, tmp_path)
    assert done.returncode == 0, done.stderr
    files, launch = json.loads(done.stdout)
    assert files == ["train.py"]
    assert (launch["node"], launch["rank"], launch["role"]) == ("worker", None, "worker")
    assert launch["command"] == ["train.py", "--text", "it's <% $secrets.x %>"]
    assert launch["folder"] == "file:///mnt/vision-nfs/vision/dev/train/base/1".replace(
        "/mnt/vision-nfs", f"{tmp_path}/nfs"
    )
    assert launch["version"] == 5
    assert launch["ports"]["rendezvous"] == {"range": None, "listens": False, "pinned": "start-option", "reserved": 1}
    assert launch["environment"]["MASTER_PORT"] == "{port.rendezvous}"
