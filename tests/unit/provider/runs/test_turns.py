# SPDX-License-Identifier: Apache-2.0
"""Runs of a sweep with `atMost`: no more of them are alive at once, however many `up` starts side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from catalog.platforms import LONGEST_EXPECTS
from components.platform.calls import Call, Cancelled, Stop
from components.platform.client import RunPlatforms
from components.platform.inputs import input_failures
from components.platform.runs import NodeRun, RunSpec, fingerprint_of_run
from components.platform.values import Properties
from provider.base.wire import Engine, UrnReporter
from provider.runs.resource import RunResource

TURNS = {"atMost": 2, "names": "sweep-lr-"}


def inputs(run: str, **more: Any) -> Properties:
    return {
        "platform": "oci", "job": "j", "project": "p", "compartment": "c", "displayName": run, "layout": "run-per-node",
        "nodes": [{"name": "main"}], "until": "accepted", "attempt": 1, "tags": {"job": "line", "run": run},
        "turns": TURNS, **more,
    }  # fmt: skip


def call(name: str, stop: Stop | None = None) -> Call:
    urn = f"urn:pulumi:dev::trainyard::trainyard:index:Run::{name}"
    return Call(urn=urn, type="", name=name, report=UrnReporter(Engine(), urn, frozenset()), stop=stop or Stop())


class _Place(RunPlatforms):
    """A platform whose runs live until the test ends them."""

    def __init__(self) -> None:
        super().__init__({})
        self.alive: dict[str, str] = {}
        self.most = 0
        self.begun: list[str] = []
        self._lock = threading.Lock()

    def of(self, inputs: Properties, run_id: str = "") -> Any:
        return self

    def ensure(self, call: Call, spec: RunSpec, started: Sequence[NodeRun]) -> Iterator[NodeRun]:
        with self._lock:
            self.alive[spec.fingerprint] = spec.tags["run"]
            self.begun.append(spec.tags["run"])
            self.most = max(self.most, sum(run.startswith("sweep-lr-") for run in self.alive.values()))
        yield NodeRun("main", spec.fingerprint, "ACCEPTED")

    def living(self, call: Call, inputs: Properties) -> Mapping[str, str]:
        with self._lock:
            return dict(self.alive)

    def end_one(self) -> None:
        with self._lock:
            own = next((key for key, run in self.alive.items() if run.startswith("sweep-")), None)
            if own is not None:
                del self.alive[own]


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("provider.runs.starting._FIRST_PAUSE", 0.01)
    monkeypatch.setattr("provider.runs.starting._LONGEST_PAUSE", 0.01)
    monkeypatch.setattr("provider.runs.starting._STOP_SECONDS", 0.01)


def test_no_more_runs_of_a_sweep_are_alive_than_may_be_and_all_have_their_turn() -> None:
    place = _Place()
    place.alive["other"] = "base"  # no run of the sweep
    resource = RunResource(lambda: place)
    names = [f"sweep-lr-{number}" for number in range(7)]
    with ThreadPoolExecutor(len(names)) as pool:
        made = [pool.submit(resource.create, call(name), inputs(name)) for name in names]
        ends = time.monotonic() + 60
        while not all(one.done() for one in made) and time.monotonic() < ends:
            if sum(run.startswith("sweep-") for run in place.living(call("x"), {}).values()) == 2:
                place.end_one()
        assert [one.result().outputs["state"] for one in made] == ["ACCEPTED"] * 7
    assert place.most == 2
    assert sorted(place.begun) == names


def test_a_run_that_an_interrupted_up_has_started_does_not_wait_for_others() -> None:
    place, own = _Place(), inputs("sweep-lr-1")
    place.alive = {"a": "sweep-lr-2", "b": "sweep-lr-3", fingerprint_of_run(call("one").urn, own): "sweep-lr-1"}
    assert RunResource(lambda: place).create(call("one"), own).outputs["state"] == "ACCEPTED"


def test_a_run_that_waits_ends_with_up_and_has_started_nothing() -> None:
    place, stop = _Place(), Stop()
    place.alive = {"a": "sweep-lr-2", "b": "sweep-lr-3"}
    with ThreadPoolExecutor(2) as pool:
        resource = RunResource(lambda: place)
        waiting = [
            pool.submit(resource.create, call(name, stop), inputs(name)) for name in ("sweep-lr-1", "sweep-lr-4")
        ]
        stop.ask()
        for one in waiting:
            with pytest.raises(Cancelled):
                one.result()
    assert place.begun == []


def test_the_time_that_a_run_waits_is_no_part_of_its_timeouts() -> None:
    place = _Place()
    place.alive = {"a": "sweep-lr-2", "b": "sweep-lr-3"}
    seen: list[float] = []
    ensure = place.ensure

    def ending(call: Call, inputs: Properties) -> Mapping[str, str]:
        place.end_one()
        return dict(place.alive)

    def watched(call: Call, spec: RunSpec, started: Sequence[NodeRun]) -> Iterator[NodeRun]:
        seen.append(call.started)
        return ensure(call, spec, started)

    place.living, place.ensure = ending, watched  # type: ignore[method-assign]
    asked = call("one")
    RunResource(lambda: place).create(asked, inputs("sweep-lr-1"))
    assert seen[0] > asked.started


def test_another_limit_changes_no_run_and_starts_none_again() -> None:
    old, new = inputs("sweep-lr-1"), inputs("sweep-lr-1", turns={**TURNS, "atMost": 5})
    without = {key: value for key, value in old.items() if key != "turns"}
    assert fingerprint_of_run("urn", old) == fingerprint_of_run("urn", new) == fingerprint_of_run("urn", without)
    resource = RunResource(_Place)
    outputs = {**old, "state": "SUCCEEDED", "__reached": "accepted", "nodeRuns": []}
    for before, after in ((old, new), (without, new), (old, without)):
        assert resource.diff(call("one"), before, outputs, after).replaces == []


def test_what_a_run_expects_is_told_to_its_starts_and_changes_no_run() -> None:
    old, new, other = inputs("a"), inputs("a", expects={"version": 1}), inputs("a", expects={"version": 2})
    assert fingerprint_of_run("urn", old) == fingerprint_of_run("urn", new)
    outputs = {**old, "state": "SUCCEEDED", "__reached": "accepted", "nodeRuns": []}
    seen = [
        RunResource(_Place).diff(call("one"), before, outputs, after) for before, after in ((old, new), (new, other))
    ]
    assert [dict(one.changes) for one in seen] == [{}, {}]
    long = {"version": 1, "connections": ["x" * LONGEST_EXPECTS]}
    assert [one.property for one in input_failures(inputs("a", expects=long))] == ["expects"]


@pytest.mark.parametrize("turns", [{"atMost": 2}, {"atMost": 0, "names": "x"}, {"atMost": True, "names": "x"}, [], 3])
def test_what_is_no_limit_is_refused(turns: Any) -> None:
    assert [one.property.partition(".")[0] for one in input_failures(inputs("x", turns=turns))] == ["turns"]
    assert list(input_failures(inputs("x"))) == []
