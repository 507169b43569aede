# SPDX-License-Identifier: Apache-2.0
"""All nodes of a run test each other over a shared folder, on loopback addresses. What they find is one sentence."""

from __future__ import annotations

import itertools
import os
import re
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from launcher import node_tests, preflight
from launcher.board import Board, Event, finding_name, parse_board_events
from launcher.board_client import BoardClient
from launcher.closed_ports import closed_sentence, pack_ranks, unpack_ranks
from launcher.devices import KINDS, device_problem
from launcher.document import Launch, Port
from launcher.errors import LaunchError, MissingError
from launcher.expects import Expects, PlannedConnection, PlannedNode
from launcher.peers import PeerRequest, find_addresses
from launcher.placeholders import Place
from launcher.port_tests import PortOfPeer, PortTests
from launcher.preflight import Preflight
from launcher.printing import LinePrinter
from launcher.readiness import Wait
from launcher.stores import Folder, Stored, StoreError, folder_opener
from tests.support.documents import document, launch
from tests.support.nodes import block
from tests.support.waiting import eventually

EXPECTS = Expects(
    "on",
    (
        PlannedConnection("rendezvous", ("worker",), ("main",), "the store where the ranks meet"),
        PlannedConnection("data", ("main", "worker"), ("main", "worker"), "gloo"),
    ),
    "security list demo-rules of subnet 10.20.0.0/24",
    "10.20.0.0/24",
)
_SILENT = LinePrinter()


class Nodes:
    """The three nodes of a run, each in a thread."""

    def __init__(self, folder: Path, expects: Expects = EXPECTS) -> None:
        self.folder, self.expects = folder, expects
        (self.rendezvous, _), (self.data, _) = block(1), block(4)
        self.results: dict[int, Mapping[str, Any]] = {}
        self.errors: dict[int, Exception] = {}
        # Tests run in several processes at once, and two of them may choose the same ports.
        self.addresses = [f"127.{os.getpid() // 250 % 250}.{os.getpid() % 250}.{21 + rank}" for rank in range(3)]
        # `list`: all know the addresses before any node has arrived, as on OpenPAI.
        self.peers = "bucket"
        # Nodes that meet the others and test nothing, as those of an older release.
        self.older: set[int] = set()
        # Nodes to which the store refuses objects that have this in their names.
        self.refused: dict[int, str] = {}

    def launch(self, rank: int) -> Launch:
        ports = {
            "rendezvous": Port((self.rendezvous, self.rendezvous), rank == 0, "option"),
            "data": Port((self.data, self.data + 3), True, "kernel-range"),
        }
        peers = {"from": self.peers, "addresses": self.addresses}
        made = launch(rank, {"TRAINYARD_START": "s1"}, peers=peers, folder=f"file://{self.folder}")
        return replace(made, ports=ports)

    def run(self, *ranks: int) -> None:
        threads = [threading.Thread(target=self._run, args=(rank,)) for rank in ranks or range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _run(self, rank: int) -> None:
        made = self.launch(rank)
        environment = {"TRAINYARD_NODE_ADDRESS": self.addresses[rank]}
        opened = folder_opener(environment, _SILENT)

        def open_folder(uri: str) -> Folder:
            folder = opened(uri)
            put, refused = folder.put, self.refused.get(rank)

            def put_or_refuse(name: str, content: bytes, new: bool = False) -> str:
                if refused and refused in name:
                    raise StoreError(403, f"403 Forbidden: PUT {name}")
                return put(name, content, new)

            folder.put = put_or_refuse  # type: ignore[method-assign]
            return folder

        client = BoardClient(made, str(made.folder), open_folder, environment, _SILENT)
        root = self.folder.parent / f"node-{rank}"
        root.mkdir()
        tests = Preflight(made, self.expects, _SILENT, client, root, lambda: False)
        try:
            wait = Wait(_SILENT, lambda: "", 30.0, "")
            members = find_addresses(PeerRequest(made, environment, 0, wait, client))
            place = Place(tuple(members[other] for other in range(3)), members[rank], "lo", 0, "")
            if rank not in self.older:
                tests.run(0, place)
        except (LaunchError, MissingError) as error:
            self.errors[rank] = error
        finally:
            self.results[rank] = tests.result
            client.close(1.0 if self.refused else 5.0)


@pytest.fixture
def nodes(tmp_path: Path) -> Nodes:
    folder = tmp_path / "runs"
    folder.mkdir()
    return Nodes(folder)


def test_nodes_that_reach_one_another_find_nothing(nodes: Nodes) -> None:
    nodes.run()
    assert nodes.errors == {}
    assert {rank: result["connections"] for rank, result in nodes.results.items()} == {0: 4, 1: 5, 2: 5}
    assert all(result["findings"] == [] for result in nodes.results.values())


def test_nobody_waits_for_nodes_that_share_an_address_and_test_no_port(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "_SILENT_SECONDS", 60.0)
    nodes.addresses[1] = nodes.addresses[0]
    nodes.run()
    assert nodes.errors == {}
    assert {rank: result["connections"] for rank, result in nodes.results.items()} == {0: 0, 1: 0, 2: 5}
    assert nodes.results[2]["seconds"] < preflight._SILENT_SECONDS


def test_a_node_that_begins_later_is_waited_for_where_the_platform_knows_the_addresses(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "_SILENT_SECONDS", 60.0)
    nodes.peers = "list"
    early = threading.Thread(target=nodes.run, args=(0, 1))
    early.start()
    eventually(lambda: len(list(nodes.folder.rglob("*done*"))) == 2)
    assert not nodes.results, "both have tested everything, and wait"
    nodes.run(2)
    early.join()
    assert nodes.errors == {}
    assert {rank: result["connections"] for rank, result in nodes.results.items()} == {0: 4, 1: 5, 2: 5}
    assert all(result["seconds"] < preflight._SILENT_SECONDS for result in nodes.results.values())
    assert not list(nodes.folder.rglob("*left*"))


def test_a_node_that_begins_too_late_does_not_disturb_the_framework_of_one_that_has_gone_on(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "_SILENT_SECONDS", 0.2)
    nodes.peers = "list"
    nodes.run(0, 1)
    with closing(socket.create_server((nodes.addresses[0], nodes.rendezvous))) as framework:
        nodes.run(2)
        framework.setblocking(False)
        with pytest.raises(BlockingIOError):
            framework.accept()
    assert nodes.errors == {}


def test_peers_of_an_older_release_are_not_waited_for_and_not_accused(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "_SILENT_SECONDS", 1.0)
    _drops(monkeypatch, lambda rank, target: target.rank == 2)  # nobody could say that this one listens
    nodes.older = {2}
    nodes.run()
    assert nodes.errors == {}
    assert all(nodes.results[rank]["findings"] == [] for rank in (0, 1))
    assert all(1.0 <= nodes.results[rank]["seconds"] < 5.0 for rank in (0, 1))


def test_a_store_that_refuses_only_what_tests_write_keeps_nobody_from_training(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "_SILENT_SECONDS", 0.5)
    monkeypatch.setattr(preflight, "_OTHERS_SECONDS", 1.0)
    nodes.refused = {1: "/test/"}
    nodes.run()
    assert nodes.errors == {}
    assert all(result["findings"] == [] for result in nodes.results.values())


LIES = (
    "closed/data/5/0-99999999", "closed/data/5/0-9999", "closed/data/-5/0", "closed/data/5", "closed/data/x/0",
    "closed/nothing/5/0", "closed/../../../etc/5/0", "closed/data/5/" + "0." * 90 + "0", "closed//5/0",
    "opened/data/5/0", "closed/data/5/\x1b[2J",
)  # fmt: skip


def test_a_node_that_lies_says_nothing_in_the_name_of_others_and_breaks_nobody(nodes: Nodes) -> None:
    made = nodes.launch(0)
    tests = Preflight(made, EXPECTS, _SILENT, None, nodes.folder, lambda: False)
    told = {1: {*LIES, "done"}}
    said = tests._sentence(PortTests("run", 0, nodes.addresses[0], ()), told)
    assert said.count("cannot reach") == 1, "its own word about port 5, and only about nodes that there are"
    assert said.startswith("worker-0 cannot reach main-0, worker-0 and worker-1 on TCP 5 of ")
    assert "\x1b" not in said


def test_500_nodes_that_do_not_reach_one_another_are_one_short_sentence() -> None:
    main, worker = document()["roles"]
    many = replace(launch(roles=[main, {**worker, "replicas": 499}]), ports={"data": Port((29500, 29500), True, "")})
    closed = {("data", 29500): set(itertools.permutations(range(500), 2))}
    began = time.process_time()
    words = closed_sentence(many, EXPECTS, closed)
    assert time.process_time() - began < 3.0
    who = "main-0, worker-0, worker-1, worker-2 and 496 more"
    assert words.startswith(f"{who} cannot reach one another on TCP 29500 (data: gloo).")
    assert len(words) < 300
    assert unpack_ranks(pack_ranks(range(1, 500))) == list(range(1, 500))


@pytest.mark.parametrize("late", [1, 7])
def test_a_node_that_joins_an_elastic_run_later_tests_nothing(nodes: Nodes, late: int) -> None:
    made = replace(nodes.launch(2), framework="horovod", options={"elastic": True})
    assert made.elastic
    tests = Preflight(made, EXPECTS, _SILENT, None, nodes.folder, lambda: False)
    tests.run(late, Place(("", *nodes.addresses[1:]), nodes.addresses[2], "lo", 0, ""))
    assert tests.result == {}


def _drops(monkeypatch: pytest.MonkeyPatch, dropped: Any) -> None:
    """Connections for which `dropped` is true get no answer: they are never made."""
    connect = PortTests._connect

    def only_others(self: PortTests, target: PortOfPeer) -> None:
        if not dropped(self._rank, target):
            connect(self, target)

    monkeypatch.setattr(PortTests, "_connect", only_others)
    monkeypatch.setattr(preflight, "CLOSED_SECONDS", 0.5)


def test_all_say_the_same_sentence_about_a_closed_port(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    _drops(monkeypatch, lambda rank, target: target.label == "rendezvous")
    nodes.run()
    assert {type(error) for error in nodes.errors.values()} == {LaunchError}
    assert {str(error) for error in nodes.errors.values()} == {
        f"worker-0 and worker-1 cannot reach main-0 on TCP {nodes.rendezvous} (rendezvous: the store where the ranks "
        f"meet). Add to security list demo-rules of subnet 10.20.0.0/24: ingress and egress TCP {nodes.rendezvous}, "
        "10.20.0.0/24"
    }
    assert len(nodes.errors) == 3


def test_with_warn_training_starts_and_the_finding_is_kept(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes.expects = replace(EXPECTS, preflight="warn")
    _drops(monkeypatch, lambda rank, target: rank == 2 and target.rank == 0 and target.label == "data")
    nodes.run()
    assert nodes.errors == {}
    (finding,) = nodes.results[0]["findings"]
    assert finding.startswith(f"worker-1 cannot reach main-0 on TCP {nodes.data}-{nodes.data + 3} (data: gloo).")
    assert nodes.results[2]["closed"] == [f"data/{nodes.data}/0", f"data/{nodes.data + 3}/0"]
    assert nodes.results[0]["closed"] == nodes.results[1]["closed"] == []


def test_a_program_on_a_planned_port_is_a_finding_of_its_node_alone(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "_SILENT_SECONDS", 1.0)  # the node with the finding tests no port
    with closing(socket.create_server((nodes.addresses[0], nodes.rendezvous))):
        nodes.run()
    assert str(nodes.errors[0]).startswith(f"main-0: TCP {nodes.rendezvous} (rendezvous) is in use by another program")


@pytest.mark.parametrize("expects", [Expects(), replace(EXPECTS, connections=())])
def test_without_expectations_no_port_is_tested(nodes: Nodes, expects: Expects) -> None:
    nodes.expects = expects
    nodes.run()
    assert nodes.errors == {}
    assert all(not result.get("connections") for result in nodes.results.values())


CLOSED = [
    ({("data", 5): {(0, 1), (1, 0)}}, "main-0 and worker-0 cannot reach one another on TCP 5 of 5-8 (data: gloo)."),
    (
        {("data", port): {(0, 1), (1, 0), (2, 0), (2, 1), (0, 2), (1, 2)} for port in (5, 8)},
        "main-0, worker-0 and worker-1 cannot reach one another on TCP 5-8 (data: gloo).",
    ),
    (
        {("data", 5): {(0, 1)}, ("data", 8): {(0, 1)}, ("rendezvous", 4): {(1, 0)}},
        "main-0 cannot reach worker-0 on TCP 5-8 (data: gloo); worker-0 cannot reach main-0 on TCP 4 (rendezvous: the "
        "store where the ranks meet).",
    ),
    ({("data", 5): {(0, 1), (2, 0)}}, "main-0 cannot reach worker-0, worker-1 cannot reach main-0 on TCP 5 of 5-8"),
]


@pytest.mark.parametrize(("closed", "words"), CLOSED)
def test_the_sentence_names_who_cannot_reach_whom(closed: Any, words: str) -> None:
    ports = {"data": Port((5, 8), True, ""), "rendezvous": Port((4, 4), True, "")}
    made = replace(launch(), ports=ports)
    assert closed_sentence(made, EXPECTS, closed).startswith(words)
    assert closed_sentence(made, replace(EXPECTS, place=""), closed).endswith("through between these nodes")


def test_two_labels_of_one_port_are_one_rule_to_add() -> None:
    made = replace(launch(), ports={"ps": Port((7, 7), True, ""), "worker": Port((7, 7), True, "")})
    words = closed_sentence(made, EXPECTS, {("ps", 7): {(0, 1)}, ("worker", 7): {(0, 1)}})
    assert "ingress and egress TCP 7, " in words


def test_ranks_have_a_short_text() -> None:
    assert pack_ranks([5, 0, 1, 2]) == "0-2.5"
    assert unpack_ranks("0-2.5") == [0, 1, 2, 5]
    assert unpack_ranks("x") == unpack_ranks("1-10000") == unpack_ranks("") == []
    assert len(pack_ranks(range(0, 2000, 2))) < 200


def test_what_a_node_found_is_of_its_current_launcher_and_generation() -> None:
    names = [
        finding_name(0, 1, "old", "done"),
        finding_name(0, 1, "new", "closed/data/5/0-2"),
        finding_name(1, 1, "new", "done"),
    ]
    events = parse_board_events([Stored(name, "2026-01-01T00:00:00Z", 0, "") for name in names])
    board = Board((*events, Event(0, 1, "new", events[0].at, address="a")), 0.0)
    assert board.tests(0) == {1: {"closed/data/5/0-2"}}
    assert board.tests(1) == {1: {"done"}}


def test_a_node_tests_what_it_has(tmp_path: Path) -> None:
    assert node_tests.folder_problem(tmp_path) == ""
    assert not list(tmp_path.iterdir())
    assert "No such file" in node_tests.folder_problem(tmp_path / "missing")
    assert list(node_tests.find_shortages(tmp_path, 3.0, PlannedNode(), str(tmp_path / "missing"))) == []
    assert list(node_tests.find_shortages(tmp_path, 90.4, PlannedNode(), "")) == [
        "this node's clock is 90 s behind the store's"
    ]
    assert list(node_tests.find_shortages(tmp_path, -90.4, PlannedNode(), "")) == [
        "this node's clock is 90 s ahead of the store's"
    ]


DEVICES = {
    "nvidia": ("dev/nvidia{}", "dev/nvidiactl", "sys/module/nvidia/version"),
    "amd": ("sys/class/drm/card{}/device/mem_info_vram_total", "sys/class/drm/version", "sys/module/amdgpu/version"),
    "gaudi": ("dev/accel/accel{}", "dev/accel/accel_controlD0", "sys/module/habanalabs/version"),
    "neuron": ("dev/neuron{}", "dev/neuron", "sys/module/neuron/version"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_devices_of_each_kind_are_counted_by_the_files_of_their_driver(tmp_path: Path, kind: str) -> None:
    device, other, version = DEVICES[kind]
    for name in (device.format(0), device.format(1), other, version):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("68719476736")  # 64 GiB
    assert device_problem(kind, 2, 64, tmp_path) == device_problem("", 2, 0, tmp_path) == ""
    short = device_problem(kind, 3, 0, tmp_path)
    assert short == f"2 of 3 planned {KINDS[kind].words} are there (driver 68719476736)"
    small = device_problem(kind, 2, 192, tmp_path)
    assert small.startswith("2 of 2 AMD GPUs have 69 GB of memory, and 192 GB are planned" if kind == "amd" else "")
    (tmp_path / version).unlink()
    assert f"no driver is seen in /{version}" in device_problem(kind, 3, 0, tmp_path)


def test_a_kind_of_a_later_release_is_not_counted(tmp_path: Path) -> None:
    assert device_problem("quantum", 3, 0, tmp_path) == ""


def test_what_is_short_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = os.statvfs_result((4096, 4096, 16384, 100, 100, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: small)
    told = " ".join(node_tests.find_shortages(tmp_path, None, PlannedNode()))
    assert re.search(r"only 0\.0 GiB of disk are free at .*/dev/shm has only 64 MiB", told)
