# SPDX-License-Identifier: Apache-2.0
"""Waits of a team's own framework file, with real servers that are late, and real commands."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from components.plan.build import plan_of
from components.plan.model import NodePlan
from schemas.judge import judge_file
from tests.support.nodes import Nodes, block, nodes, planned, waited

# Head and workers listen; a worker only once a file lets it.
COLUMNS = """
name = "pool"
summary = "a head, and workers that listen"
rank = "the head is rank 0"

[roles.head]
minimum = 1
maximum = 1
mode = "MAIN"
why = "asks the workers"
runs_command = true
WAIT

[roles.worker]
minimum = 1
mode = "WORKER"
why = "answer"
service = true
start = ["{python}", "-u", "serve.py", "{address}", "{port.worker}", "{index}"]
WORKER_WAIT

[[ports]]
label = "worker"
listens = ["worker"]
reached_from = ["head"]
default = PORT
why = "the head asks the workers"

[[ports]]
label = "head"
listens = ["head"]
reached_from = ["worker"]
default = HEAD_PORT
why = "workers ask for the head"
"""
STACK = """
config:
  oci:region: us-ashburn-1
  trainyard:team: lab
  trainyard:environment: dev
  trainyard:tenancy: ocid1.tenancy.oc1..aaaacompany
  trainyard:compartment: ocid1.compartment.oc1..aaaalab
  trainyard:access: { users: { group: scientists } }
  trainyard:frameworks: { pool: pool.toml }
  trainyard:jobs:
    ask:
      framework: pool
      image: ${registry}:1
      shape: VM.Standard.E4.Flex
      command: python -u train.py
      roles: { head: 1, worker: 2 }
      runs: { base: {} }
"""
SERVE = """
import pathlib, socket, sys, time
address, port, index = sys.argv[1:]
print("up", flush=True)
while not pathlib.Path(f"go-{index}").exists():
    time.sleep(0.02)
server = socket.create_server((address, int(port)))
while True:
    connection, _ = server.accept()
    print("asked", flush=True)
    connection.sendall(b"hello")
    connection.close()
"""
# Ends with 3 as long as a worker does not answer.
CHECK = """
import os, socket, sys
addresses, port, nodes = sys.argv[1:]
assert nodes == "3"
with open("tries", "a") as file:
    file.write("try\\n")
for address in addresses.split(","):
    try:
        socket.create_connection((address, int(port)), timeout=5).close()
    except OSError:
        print(f"{address} {os.environ['MOOD']}\\n")
        sys.exit(3)
"""
TRAIN = """
import socket
for rank in (2, 3):
    print(rank, socket.create_connection((f"127.0.0.{rank}", PORT), timeout=5).recv(9).decode())
"""


def pool(folder: Path, wait: str = "", worker_wait: str = "") -> tuple[NodePlan, ...]:
    """The nodes of a job with the framework; ports are free ones."""
    folder.mkdir(parents=True, exist_ok=True)
    port, head = block(2)
    columns = COLUMNS.replace("WORKER_WAIT", worker_wait).replace("WAIT", wait)
    (folder / "pool.toml").write_text(columns.replace("HEAD_PORT", str(head)).replace("PORT", str(port)))
    file = folder / "Pulumi.lab.yaml"
    file.write_text(STACK.replace("VM.Standard.E4.Flex", "{ name: VM.Standard.E4.Flex, ocpus: 1, memoryGb: 8 }"))
    (folder / "check.py").write_text(CHECK)
    (folder / "serve.py").write_text(SERVE)
    (folder / "train.py").write_text(TRAIN.replace("PORT", str(port)))
    judged = judge_file(file)
    assert judged.findings == ()
    return plan_of(judged).jobs["ask"].runs["base"].nodes


def run_of(home: Path, documents: tuple[NodePlan, ...], **variables: str) -> AbstractContextManager[Nodes]:
    more = {"addresses": ("127.0.0.1", "127.0.0.2", "127.0.0.3"), "variables": variables}
    return nodes(None, home, planned("pytorch", {}), "pool", documents, **more)


CHECKS = 'awaits_command = ["check.py", "{addresses.worker}", "{port.worker}", "{nodes}"]'


def test_a_command_waits_for_a_port_on_every_node_of_a_role(tmp_path: Path) -> None:
    documents = pool(tmp_path, 'awaits_every = ["worker"]')
    assert [node.launch["version"] for node in documents] == [2, 1, 1], "only a node that waits needs a newer image"
    with run_of(tmp_path, documents) as run:
        run.start()
        run.launchers[2].says("up")
        (tmp_path / "go-0").touch()
        run.launchers[1].says("asked")
        (tmp_path / "go-1").touch()
        assert run.launchers[0].code() == 0
        assert "[0] 2 hello\n[0] 3 hello" in run.launchers[0].text


def test_a_command_waits_for_a_command_that_succeeds(tmp_path: Path) -> None:
    with run_of(tmp_path, pool(tmp_path, CHECKS), MOOD="is asleep") as run:
        run.start()
        waited(lambda: (tmp_path / "tries").exists() and (tmp_path / "tries").read_text().count("try") > 1)
        (tmp_path / "go-0").touch()
        (tmp_path / "go-1").touch()
        assert run.launchers[0].code() == 0
        assert "[0] 2 hello\n[0] 3 hello" in run.launchers[0].text
        assert "asleep" not in run.launchers[0].text, "tries are repeated; what they print is said only when it matters"


def test_a_timed_out_wait_shows_the_last_line_of_the_command(tmp_path: Path) -> None:
    with run_of(tmp_path, pool(tmp_path, CHECKS), MOOD="is asleep", TRAINYARD_READY_SECONDS="2.5") as run:
        assert run.start(0).codes() == [75]
        run.launchers[0].says(
            r"gave up after 2\.5 s: waited for `.*check\.py 127\.0\.0\.2,127\.0\.0\.3 \d+ 3` to succeed: "
            r".*, and printed: 127\.0\.0\.2 is asleep"
        )


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ('"chekc"', "`chekc` is not in this image: correct `awaits_command` in the framework's file, or the image"),
        ('"sh", "-c", "chekc"', "ended with code 127 (is not there), and printed: sh: 1: chekc: not found: correct"),
    ],
)
def test_a_missing_wait_command_ends_the_node_at_once(tmp_path: Path, words: str, reason: str) -> None:
    with run_of(tmp_path, pool(tmp_path, f"awaits_command = [{words}]")) as run:
        assert run.start(0).codes() == [78]
        assert reason in run.launchers[0].text


def test_a_node_without_a_command_waits_before_it_serves(tmp_path: Path) -> None:
    documents = pool(tmp_path, worker_wait='awaits = ["head"]')
    with run_of(tmp_path, documents, TRAINYARD_READY_SECONDS="1") as run:
        assert run.start(1).codes() == [75]
        run.launchers[1].says(r"gave up after 1 s: waited for port \d+ of rank 0 \(head-0\) to answer at 127\.0\.0\.1")
        assert "[1] up" not in run.launchers[1].text


# Gives up waiting for its own parts at its first start, as Ray's services do on a busy machine.
SLOW = """
import pathlib, socket, sys, time
name, address, port = sys.argv[1:]
print("up", flush=True)
time.sleep(0.5)
first = pathlib.Path(f"{name}-was-here")
if not first.exists():
    first.touch()
    sys.exit("timed out during startup")
server = socket.create_server((address, int(port)))
while True:
    connection, _ = server.accept()
    connection.sendall(b"hello")
    connection.close()
"""


@pytest.mark.parametrize("slow", ["head", "worker-0"])
def test_a_service_that_gives_up_before_it_was_ready_starts_again(tmp_path: Path, slow: str) -> None:
    start = 'start = ["{python}", "-u", "slow.py", "head", "{address}", "{port.head}"]\nawaits = ["head"]'
    documents = pool(tmp_path, f'{start}\nawaits_every = ["worker"]')
    for name in {"head", "worker-0", "worker-1"} - {slow}:
        (tmp_path / f"{name}-was-here").touch()
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "serve.py").write_text(SLOW.replace("name, address, port =", "address, port, index =").replace(
        'f"{name}-was-here"', 'f"worker-{index}-was-here"'
    ))  # fmt: skip
    with run_of(tmp_path, documents, TRAINYARD_SLOW_SECONDS="0.3") as run:
        run.start()
        assert run.launchers[0].code() == 0
        late = run.launchers[0 if slow == "head" else 1]
        late.says("ended with code 1, late, before its service was ready: retry 1 of 2, not counted")
        assert "[0] 2 hello\n[0] 3 hello" in run.launchers[0].text


LOGS = """
import pathlib, sys
logs = pathlib.Path(sys.argv[1], "session", "logs")
logs.mkdir(parents=True)
(logs / "manager.err").write_text("began\\n" * 9 + "no room for the store\\n")
(logs / "empty.err").touch()
(logs / "linked.log").symlink_to("/etc/hostname")
"""


def test_a_failed_node_prints_the_frameworks_log_files(tmp_path: Path) -> None:
    """Those log files are lost with the node, and the program may have printed nothing else."""
    start = 'start = ["sh", "-c", "{python} logs.py {scratch} && exit 3"]'
    # No worker ever answers, so the program of this node does not begin before the service ends.
    documents = pool(tmp_path, f"{start}\n{CHECKS}")
    (tmp_path / "logs.py").write_text(LOGS)
    with run_of(tmp_path, documents, MOOD="is asleep") as run:
        assert run.start(0).codes() == [3]
        assert "the end of session/logs/manager.err:" in run.launchers[0].text
        assert "  no room for the store" in run.launchers[0].text
        assert "empty.err" not in run.launchers[0].text
        assert "linked.log" not in run.launchers[0].text


def test_a_timed_out_wait_prints_the_frameworks_log_files(tmp_path: Path) -> None:
    start = 'start = ["sh", "-c", "{python} logs.py {scratch} && sleep 60"]'
    documents = pool(tmp_path, f"{start}\n{CHECKS}")
    (tmp_path / "logs.py").write_text(LOGS)
    with run_of(tmp_path, documents, MOOD="is asleep", TRAINYARD_READY_SECONDS="2.5") as run:
        assert run.start(0).codes() == [75]
        assert "  no room for the store" in run.launchers[0].text
