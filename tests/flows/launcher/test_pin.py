# SPDX-License-Identifier: Apache-2.0
"""The library that keeps data ports to their range, compiled and loaded by real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.model import PortRange
from tests.support.nodes import ROOT, Place, block, nodes, planned
from tests.support.programs import require_program

SOURCE = ROOT / "launcher" / "pin" / "pin.c"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as an image builds it."""
    built = tmp_path_factory.mktemp("pin") / "libpin.so"
    words = [
        require_program("gcc"),
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-shared",
        "-fPIC",
        "-o",
        str(built),
        str(SOURCE),
        "-ldl",
    ]
    subprocess.run(words, check=True)
    return built


def say(library: Path, ports: tuple[int, int], script: str) -> tuple[object, str]:
    environment = {"LD_PRELOAD": str(library), "TRAINYARD_PIN_PORTS": f"{ports[0]}-{ports[1]}"}
    done = subprocess.run(
        [sys.executable, "-c", f"import json, socket\n{script}"], env=environment, capture_output=True, text=True,
        check=True, timeout=60,
    )  # fmt: skip
    return json.loads(done.stdout), done.stderr


def test_each_socket_gets_a_different_port_of_the_range(library: Path) -> None:
    ports = block(8)
    found, _ = say(library, ports, """
listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(8)]
print(json.dumps([one.getsockname()[1] for one in listeners]))""")  # fmt: skip
    assert isinstance(found, list)
    assert sorted(found) == list(range(ports[0], ports[1] + 1))


def test_a_full_port_range_is_reported_and_training_continues(library: Path) -> None:
    ports = block(2)
    found, said = say(library, ports, """
listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
print(json.dumps([one.getsockname()[1] for one in listeners]))""")  # fmt: skip
    assert isinstance(found, list)
    assert len({port for port in found if ports[0] <= port <= ports[1]}) == 2
    assert said.count(f"no port of {ports[0]}-{ports[1]} is free") == 1


def test_two_sockets_bound_to_one_port_can_both_listen(library: Path) -> None:
    ports = block(2)
    found, _ = say(library, ports, """
three = [socket.socket() for _ in range(3)]
for one in three:
    one.bind(("127.0.0.1", 0))
before = [one.getsockname()[1] for one in three]
three[1].close()
three[0].listen()
three[2].setblocking(False)
three[2].listen()
after = [one.getsockname()[1] for one in (three[0], three[2])]
client = socket.create_connection(("127.0.0.1", after[1]))
import select
select.select([three[2]], [], [], 10)
accepted, _ = three[2].accept()
print(json.dumps([before[0] == before[2], after]))""")  # fmt: skip
    assert isinstance(found, list)
    assert found[0], "both were given the same port before either listened"
    assert sorted(found[1]) == list(ports)


def test_explicit_ports_and_other_kinds_of_sockets_stay_unchanged(library: Path) -> None:
    first, free = block(3)
    ports = first, first + 1
    found, _ = say(library, ports, f"""
explicit = socket.create_server(("127.0.0.1", {free}))
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("127.0.0.1", 0))
local = socket.socket(socket.AF_UNIX)
local.bind("\\0trainyard-pin-{free}")
print(json.dumps([explicit.getsockname()[1], datagrams.getsockname()[1]]))""")  # fmt: skip
    assert isinstance(found, list)
    assert found[0] == free
    assert not ports[0] <= found[1] <= ports[1]


LISTENS = """
import os, socket
server = socket.create_server(("127.0.0.1", 0))
print("listens", server.getsockname()[1])
"""


def test_processes_of_a_launcher_keep_to_the_range(place: Place, library: Path, tmp_path: Path) -> None:
    port, last = block(9)
    first = port + 1
    spec = planned("pytorch", {"main": 1}, ports={"rendezvous": PortRange(port, port), "data": PortRange(first, last)},
                   options={"processes": 3})  # fmt: skip
    with nodes(place, tmp_path, spec, "pinned", variables={"TRAINYARD_PIN_LIBRARY": str(library)}) as run:
        run.script(LISTENS)
        assert run.start().codes() == [0]
        listened = [int(run.launchers[0].says(rf"\[0\.{local}\] listens (\d+)")[1]) for local in range(3)]
        assert all(first <= one <= last for one in listened)
    with nodes(place, tmp_path, spec, "unpinned") as run:
        assert run.start().codes() == [0]
        assert f"warning: data ports are not kept to {first}-{last} here" in run.launchers[0].text
