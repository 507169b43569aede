# SPDX-License-Identifier: Apache-2.0
"""The variables and arguments for each framework, and how its nodes meet: small scripts connect on the planned
ports."""

from __future__ import annotations

import json
from pathlib import Path

from schemas.model import PortRange, Role
from tests.support.nodes import Place, block, nodes, planned

# Every rank sends its variables to rank 0, at the planned address and port.
MEETS = """
import json, os, socket, sys, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
told = {name: os.environ[name] for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "GLOO_SOCKET_IFNAME")}
if rank == 0:
    server = socket.create_server(where)
    seen = [told]
    for _ in range(size - 1):
        connection, _ = server.accept()
        seen.append(json.loads(connection.makefile().readline()))
    print("met", json.dumps(sorted(seen, key=lambda one: int(one["RANK"]))))
else:
    deadline = time.monotonic() + 60
    while True:
        try:
            connection = socket.create_connection(where, timeout=5)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    connection.sendall(json.dumps(told).encode() + b"\\n")
print("done")
"""


def test_pytorch_ranks_connect_to_the_main_node(place: Place, tmp_path: Path) -> None:
    port, _ = block(1)
    spec = planned("pytorch", {"main": 1, "worker": 2}, options={"processes": 2},
                   ports={"rendezvous": PortRange(port, port), "data": "all"})  # fmt: skip
    with nodes(place, tmp_path, spec, "ddp") as run:
        run.script(MEETS)
        assert run.start().codes() == [0, 0, 0]
        met = json.loads(run.launchers[0].says(r"\[0\.0\] met (.*)")[1])
        assert [(one["RANK"], one["LOCAL_RANK"], one["NODE_RANK"]) for one in met] == [
            (str(rank), str(rank % 2), str(rank // 2)) for rank in range(6)
        ]
        assert {one["GLOO_SOCKET_IFNAME"] for one in met} == {"lo"}
        assert "[2.1] done" in run.launchers[2].text


def test_peers_from_a_list_need_no_bucket(tmp_path: Path) -> None:
    port, _ = block(1)
    spec = planned("pytorch", {"main": 1, "worker": 1}, ports={"rendezvous": PortRange(port, port), "data": "all"})
    with nodes(None, tmp_path, spec, "list") as run:
        run.script(MEETS)
        assert run.start().codes() == [0, 0]


SERVES = """
import json, os, socket, sys, time
config = json.loads(os.environ["TF_CONFIG"])
cluster, task = config["cluster"], config["task"]
host, port = cluster[task["type"]][task["index"]].split(":")
if task["type"] == "chief":
    for role in ("worker", "ps"):
        for index, where in enumerate(cluster[role]):
            deadline = time.monotonic() + 60
            while True:
                try:
                    connection = socket.create_connection(tuple(where.split(":")), timeout=5)
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
            print("heard", connection.makefile().readline().strip())
else:
    server = socket.create_server((host, int(port)))
    while True:
        connection, _ = server.accept()
        connection.sendall(f"{task['type']} {task['index']}\\n".encode())
        connection.close()
"""


def test_parameter_servers_succeed_when_the_chief_has_ended(place: Place, tmp_path: Path) -> None:
    worker, ps = block(2)
    spec = planned("tensorflow", {"main": 1, "worker": 2, "ps": Role(1)}, strategy="parameter-server",
                   ports={"worker": PortRange(worker, worker), "ps": PortRange(ps, ps)})  # fmt: skip
    with nodes(place, tmp_path, spec, "ps") as run:
        run.script(SERVES)
        assert run.start().codes() == [0, 0, 0, 0]
        heard = [line for line in run.launchers[0].said if "heard" in line]
        assert heard == ["[0] heard worker 0", "[0] heard worker 1", "[0] heard ps 0"]
        assert "the run is complete" in run.launchers[3].text
        assert place.status(run, 3)["state"] == "stopped"
        assert place.status(run, 0)["state"] == "succeeded"
