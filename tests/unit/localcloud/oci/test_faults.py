# SPDX-License-Identifier: Apache-2.0
"""The calls that a fault strikes, and invalid faults."""

from pathlib import Path
from typing import Any

import pytest

from localcloud.oci.tenancy_store import FaultTable, StateStore
from localcloud.server.api_errors import ApiError
from localcloud.server.faults import KINDS, Faults
from trainyard.cli.cloud import _KINDS


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = StateStore(tmp_path / "state.sqlite3")
    yield opened
    opened.close()


def _struck(faults: Faults, operation: str, calls: int) -> list[bool]:
    return [faults.strike("drop", operation) is not None for _ in range(calls)]


def test_the_command_offers_every_kind_of_fault() -> None:
    assert set(_KINDS) == set(KINDS)


def test_a_pattern_chooses_operations(store: StateStore) -> None:
    faults = Faults(FaultTable(store))
    faults.add({"kind": "drop", "operations": "Create*"})
    assert faults.strike("drop", "CreateVcn")
    assert not faults.strike("drop", "GetVcn")
    assert not faults.strike("latency", "CreateVcn")


def test_a_fault_strikes_the_requested_number_of_times(store: StateStore) -> None:
    faults = Faults(FaultTable(store))
    faults.add({"kind": "drop", "times": 2})
    assert _struck(faults, "GetVcn", 4) == [True, True, False, False]


def test_the_same_seed_strikes_the_same_calls(store: StateStore) -> None:
    patterns = []
    for seed in (1, 1, 2):
        faults = Faults(FaultTable(store))
        faults.add({"kind": "drop", "rate": 0.5, "seed": seed})
        patterns.append(_struck(faults, "GetVcn", 40))
        faults.clear()
    assert patterns[0] == patterns[1] != patterns[2]
    assert 10 < sum(patterns[0]) < 30


def test_faults_keep_their_counts_after_a_restart(store: StateStore) -> None:
    Faults(FaultTable(store)).add({"kind": "drop", "times": 2})
    assert _struck(Faults(FaultTable(store)), "GetVcn", 1) == [True]
    assert _struck(Faults(FaultTable(store)), "GetVcn", 2) == [True, False]
    assert Faults(FaultTable(store)).list()[0]["done"] == 2
    assert Faults(FaultTable(store)).clear() == 1
    assert Faults(FaultTable(store)).list() == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (None, "kind must be one of"),
        ({"kind": "flood"}, "kind must be one of"),
        ({"kind": "latency"}, "needs seconds"),
        ({"kind": "latency", "seconds": "1"}, "a number"),
        ({"kind": "latency", "seconds": -1}, "not negative"),
        ({"kind": "latency", "seconds": float("nan")}, "not negative"),
        ({"kind": "latency", "seconds": 1e6}, "seconds must be from"),
        ({"kind": "latency", "seconds": 1, "shape": "x"}, "not shape"),
        ({"kind": "status", "status": 200}, "from 400 to 599"),
        ({"kind": "drop", "rate": 2}, "rate must be"),
        ({"kind": "drop", "times": True}, "a whole number"),
        ({"kind": "limit", "limit": "vcn-count", "code": "X"}, "code must be"),
        ({"kind": "drop", "id": "x"}, "not id"),
    ],
)
def test_an_invalid_fault_is_refused_with_a_reason(store: StateStore, settings: Any, words: str) -> None:
    with pytest.raises(ApiError, match=words):
        Faults(FaultTable(store)).add(settings)
