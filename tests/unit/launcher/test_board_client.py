# SPDX-License-Identifier: Apache-2.0
"""What a node says while its store refuses, or does not answer."""

from __future__ import annotations

from typing import Any

import pytest

from launcher import board_client, peers
from launcher.board_client import BoardClient
from launcher.errors import LaunchError, MissingError
from launcher.printing import LinePrinter
from launcher.readiness import Wait
from launcher.stores import StoreError
from tests.support.documents import launch

REFUSAL = StoreError(404, "404 BucketNotFound: no such bucket (PUT /n/space/b/runs/o/status/0.json)")
SILENCE = StoreError(0, "the object store at here did not answer for 60 s: 503 ServiceUnavailable: busy")


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Shelf:
    """A folder that nobody asks in these tests."""

    uri, host, trouble = "oci://runs@space/work", "here", ""

    def give_up_when(self, stopped: Any) -> None: ...


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(board_client, "time", Clock())
    said: list[str] = []
    made = BoardClient(launch(), Shelf.uri, lambda uri: Shelf(), {}, said.append)  # type: ignore[arg-type, return-value]
    made.said = said  # type: ignore[attr-defined]
    yield made
    made.close(1.0)


def test_a_refusal_is_said_once_then_with_growing_gaps_and_ends_with_the_remedy(client: Any) -> None:
    while not client.refused:
        client._handle_error(REFUSAL)
    assert [int(line.rpartition("trying again, ")[2].split()[0]) for line in client.said] == [0, 10, 30, 70, 150]
    assert client.said[0] == f"{REFUSAL}; new access may come into force late: trying again, 0 of 300 s"
    with pytest.raises(LaunchError, match=r"may not use oci://runs@space/work: 404 .*PUT .*manage its objects is in"):
        client.check()


def test_a_store_that_answers_again_is_said_once(client: Any) -> None:
    for _ in range(3):
        client._handle_error(SILENCE)
    client._note_answer()
    client._note_answer()
    assert client.said == [f"{SILENCE}; trying again", "the object store answers again, after 6 s"]
    assert client.trouble == ""
    client._handle_error(REFUSAL)
    assert client.said[-1].endswith("trying again, 0 of 300 s"), "another trouble begins anew"


def test_a_node_that_cannot_reach_the_store_waits_for_that_and_not_for_itself(client: Any) -> None:
    wait = Wait(LinePrinter(), lambda: "", 0.0, "raise `attempt`")
    with pytest.raises(MissingError, match=r"waited for ranks 1 \(worker-0\), 2 \(worker-1\)\. Remedy: raise"):
        peers.gather_addresses(launch(), client, 0, wait)
    client.folder.trouble = "503 ServiceUnavailable: busy"
    wait = Wait(LinePrinter(), lambda: "", 0.0, "raise `attempt`")
    with pytest.raises(MissingError, match=r"the object store, without which .* cannot meet: 503 .*bucket"):
        peers.gather_addresses(launch(), client, 0, wait)
