# SPDX-License-Identifier: Apache-2.0
"""A task of OpenPAI: its ports by label, its address, and the exit codes that OpenPAI understands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import pytest

from launcher import placeholders, start
from launcher.board import Board, Event
from launcher.errors import LaunchError
from launcher.openpai.identity import NodeIdentity, find_peer_addresses
from launcher.peers import PeerRequest
from launcher.placeholders import Place
from tests.support.documents import document, launch
from tests.support.nodes import ROOT

# OpenPAI chooses each port by itself: those of one label have gaps between them.
TOLD = {
    "PAI_CURRENT_TASK_ROLE_NAME": "worker", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
    "PAI_HOST_IP_main_0": "10.1.0.1", "PAI_HOST_IP_worker_0": "10.1.0.2", "PAI_HOST_IP_worker_1": "10.1.0.3",
    "PAI_PORT_LIST_main_0_rendezvous": "31007", "PAI_PORT_LIST_worker_1_rendezvous": "31099",
    **{f"PAI_PORT_LIST_worker_{index}_data_ports": f"{20001 + index},20002,31311" for index in range(2)},
    **{f"PAI_PORT_LIST_worker_{index}_span": f"{900 + index},{901 + index}" for index in range(2)},
}  # fmt: skip
PLACE = Place(("10.1.0.1", "10.1.0.2", "10.1.0.3"), "10.1.0.3", "eth0")


def reserved(listens: bool, count: int = 1) -> dict[str, Any]:
    return {"range": None, "listens": listens, "pinned": "start-option", "reserved": count}


def of_openpai(environment: Mapping[str, str] = TOLD, **changes: Any) -> Any:
    ports = {"rendezvous": reserved(False), "data-ports": reserved(True, 3), "span": reserved(True, 2)}
    return launch(2, environment, **{"version": 5, "peers": {"from": "openpai"}, "ports": ports, **changes})


def test_ports_come_by_label_from_the_task_that_listens() -> None:
    values = placeholders.node_values(of_openpai(), PLACE)
    ports = {name.removeprefix("port."): text for name, text in values.items() if name.startswith("port.")}
    assert ports == {
        "rendezvous": "31007", "rendezvous:colon": "31007", "rendezvous:first": "31007", "rendezvous:last": "31007",
        "data-ports": "0", "data-ports:colon": "0", "data-ports:first": "0", "data-ports:last": "0",
        "span": "901-902", "span:colon": "901:902", "span:first": "901", "span:last": "902",
    }  # fmt: skip
    text = "--at {address.main}:{port.rendezvous} --ports {port.span:colon}"
    assert placeholders.fill_placeholders(text, values, "start") == "--at 10.1.0.1:31007 --ports 901:902"
    assert list(of_openpai().port_numbers("data-ports", 1)) == [20001, 20002, 31311], "each task has its own"


def test_such_a_document_is_described_by_its_schema() -> None:
    schema = json.loads((ROOT / "schemas" / "launch.schema.json").read_text())
    told = {"version": 5, "peers": {"from": "openpai"}, "ports": {"rendezvous": reserved(True)}}
    awaits = [{"role": "main", "label": "rendezvous"}]
    jsonschema.validate(document(2, **told, awaits=awaits), schema)
    node = of_openpai(awaits=awaits)
    assert node.awaited_port(node.awaits[0], 0) == 31007
    assert "waits for port rendezvous of main" in start.describe_node(node, TOLD)
    assert "listens on data-ports: 20002, 20002, 31311" in start.describe_node(node, TOLD)


@pytest.mark.parametrize(("told", "why"), [("", "reserves no ports by the label"), ("31007;reboot", "sets it to port")])
def test_ports_that_openpai_does_not_tell_end_the_node(told: str, why: str) -> None:
    with pytest.raises(LaunchError, match=why):
        placeholders.node_values(of_openpai({**TOLD, "PAI_PORT_LIST_main_0_rendezvous": told}), PLACE)


def test_tensorflow_is_told_each_tasks_own_port() -> None:
    from launcher.frameworks import tensorflow

    told = {f"PAI_PORT_LIST_{name}_worker": str(port) for port, name in enumerate(("main_0", "worker_0", "worker_1"))}
    told = {name: str(20000 + 7 * int(text)) for name, text in told.items()}
    node = of_openpai({**TOLD, **told}, framework="tensorflow", ports={"worker": reserved(True)})
    config = json.loads(tensorflow.values(node, PLACE.addresses)["tf_config"])
    assert config["cluster"] == {"worker": ["10.1.0.1:20000", "10.1.0.2:20007", "10.1.0.3:20014"]}


def test_its_address_is_the_one_that_openpai_tells_the_others() -> None:
    assert of_openpai().identity.address() == "10.1.0.3"
    assert of_openpai({}).identity.address() == ""


@dataclass
class _BoardClient:
    arrived: list[tuple[int, str]] = field(default_factory=list)

    def arrive(self, generation: int, address: str) -> None:
        self.arrived.append((generation, address))


@pytest.mark.parametrize("gang", [True, False])
def test_a_node_that_knows_all_addresses_announces_itself(gang: bool) -> None:
    board_client: Any = _BoardClient()
    wait: Any = None
    members = find_peer_addresses(PeerRequest(of_openpai(gang=gang), TOLD, 0, wait, board_client))
    assert members == {0: "10.1.0.1", 1: "10.1.0.2", 2: "10.1.0.3"}
    assert board_client.arrived == ([] if gang else [(0, "10.1.0.3")])


def test_a_task_that_is_retried_alone_ends_no_other() -> None:
    failed = Event(0, 1, "aa", 9.0, how="failed", code=3)
    over = Event(0, 0, "bb", 9.0, how="succeeded")
    board = Board((Event(0, 1, "aa", 8.0, address="10.1.0.2"), failed, over), since=8.0)
    assert [final.rank for final in board.finals(of_openpai(gang=True))] == [0, 1]
    assert [final.rank for final in board.finals(of_openpai(gang=False))] == [0]


@pytest.mark.parametrize(
    ("code", "own"),
    [(0, 0), (1, 1), (3, 3), (2, 132), (78, 132), (127, 132), (132, 132), (137, 1), (139, 139), (141, 1), (75, 75)],
)
def test_a_failure_is_of_the_same_kind_on_openpai(code: int, own: int) -> None:
    identity = of_openpai().identity
    assert isinstance(identity, NodeIdentity)
    assert identity.exit_code(code) == own
    assert launch(0).identity.exit_code(code) == code
