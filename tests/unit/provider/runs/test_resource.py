# SPDX-License-Identifier: Apache-2.0
"""A run that fails: what it says, and whether the next `up` starts it again."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from components.platform.calls import Call, PartialFailureError, ProviderError, Stop
from components.platform.client import RunPlatforms, Runs
from components.platform.runs import ACCESS_MINUTES, NodeRun, RunSpec, Try
from components.platform.values import Properties
from provider.base.wire import Engine, UrnReporter
from provider.runs.resource import RunResource
from provider.runs.starting import RETRY_FAILED

_INPUTS: Properties = {
    "platform": "oci",
    "job": "j",
    "project": "p",
    "compartment": "c",
    "displayName": "run",
    "nodes": [{"name": "main"}],
    "layout": "run-per-node",
    "until": "finished",
    "attempt": 1,
}


class _Only(RunPlatforms):
    """One platform, whose runs have ids of their own kind."""

    def __init__(self, platform: Any) -> None:
        super().__init__({})
        self._platform: Runs = platform

    def of(self, inputs: Properties, run_id: str = "") -> Runs:
        return self._platform


class _Here:
    """A platform on which every run is what it is told to be."""

    def __init__(self, **told: Any) -> None:
        self._node = NodeRun("main", "id", **told)

    def ensure(self, call: Call, spec: RunSpec, known: Sequence[NodeRun]) -> Iterator[NodeRun]:
        yield self._node

    def observe(self, call: Call, nodes: Sequence[NodeRun]) -> list[NodeRun]:
        return [self._node]

    def relabel(self, call: Call, spec: RunSpec, nodes: Sequence[NodeRun]) -> None: ...

    def tries(self, call: Call, inputs: Properties, patiently: bool) -> list[Try]:
        return []

    def living(self, call: Call, inputs: Properties) -> Mapping[str, str]:
        return {}

    def describe(self, call: Call, run_id: str) -> tuple[Properties, list[NodeRun]]:
        return _INPUTS, [self._node]

    def last_lines(self, call: Call, node: NodeRun, limit: int) -> list[str]:
        return ["the last line"]


def _call() -> Call:
    return Call("urn", "trainyard:index:Run", "run", UrnReporter(Engine(), "", frozenset()), Stop())


def _failed(**told: Any) -> tuple[RunResource, PartialFailureError]:
    platforms = _Only(_Here(state="FAILED", details="no policy", **told))
    run = RunResource(lambda: platforms)
    with pytest.raises(PartialFailureError) as failed:
        run.create(_call(), {**_INPUTS, "timeouts": {"access": 0}})
    return run, failed.value


def test_a_run_that_never_began_is_started_by_the_next_up() -> None:
    run, failed = _failed()
    assert "no policy" in failed.cause
    assert "the last line" not in failed.cause
    assert "the next `up` starts it" in failed.remedy
    assert run.diff(_call(), _INPUTS, failed.outputs, _INPUTS).replaces == ["state"]
    live = run.read(_call(), "id", failed.outputs, _INPUTS)
    assert live is not None
    assert run.diff(_call(), _INPUTS, live.outputs, _INPUTS).replaces == ["state"], "a refresh changes nothing of it"


class _Granting(_Here):
    """Refuses a few tries, as a cloud does whose policies do not count yet."""

    def __init__(self, refusals: int, details: str) -> None:
        super().__init__(state="FAILED", details=details)
        self._refusals = refusals
        self.released = 0

    def ensure(self, call: Call, spec: RunSpec, known: Sequence[NodeRun]) -> Iterator[NodeRun]:
        if self.released == self._refusals:
            self._node = NodeRun("main", "id", state="SUCCEEDED", started_at="2026-01-01T00:00:00Z")
        yield self._node

    def cancel(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        assert not nodes, "none of it lives"

    def release(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        self.released += 1


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("provider.runs.resource._FIRST_PAUSE", 0.01)


@pytest.mark.usefixtures("hasty")
def test_a_run_without_access_is_started_again_until_it_has_it() -> None:
    here = _Granting(3, "Check that the policies let the service use the subnet")
    made = RunResource(lambda: _Only(here)).create(_call(), _INPUTS)
    assert made.outputs["state"] == "SUCCEEDED"
    assert here.released == 3


@pytest.mark.usefixtures("hasty")
def test_what_no_policy_would_mend_is_not_tried_again() -> None:
    here = _Granting(1, "Out of host capacity")
    with pytest.raises(PartialFailureError, match="Out of host capacity"):
        RunResource(lambda: _Only(here)).create(_call(), _INPUTS)
    assert here.released == 0


@pytest.mark.parametrize("text", ["soon", "nan", "inf", "-1"])
def test_the_time_that_access_is_given_is_a_number(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(ACCESS_MINUTES, text)
    with pytest.raises(ProviderError, match=f"TRAINYARD_ACCESS_MINUTES is `{text}`"):
        RunResource(lambda: _Only(_Granting(0, ""))).create(_call(), _INPUTS)


def test_a_run_that_began_is_started_again_only_when_asked() -> None:
    run, failed = _failed(started_at="2026-01-01T00:00:00Z")
    assert "the last line" in failed.cause
    assert "higher `attempt`" in failed.remedy
    assert run.diff(_call(), _INPUTS, failed.outputs, _INPUTS).replaces == []
    assert run.diff(_call(), _INPUTS, failed.outputs, {**_INPUTS, "attempt": 2}).replaces == ["attempt"]


def test_a_refresh_does_not_hide_that_a_run_is_not_where_up_was_to_wait_for_it() -> None:
    run, failed = _failed(started_at="2026-01-01T00:00:00Z")
    live = run.read(_call(), "id", failed.outputs, _INPUTS)
    assert live is not None
    assert list(run.diff(_call(), _INPUTS, live.outputs, _INPUTS).changes) == ["state"]
    with pytest.raises(PartialFailureError, match="is FAILED"):
        run.update(_call(), "id", live.outputs, _INPUTS, _INPUTS)


def test_a_failed_run_that_is_imported_is_left_as_it_is() -> None:
    run, _ = _failed()
    live = run.read(_call(), "id", {}, {})
    assert live is not None
    assert not run.diff(_call(), live.inputs, live.outputs, live.inputs).changes


_BEGAN = "2026-01-01T00:00:00Z"
_LARGE: Properties = {
    **_INPUTS,
    "nodes": [{"name": "main"}, {"name": "worker", "replicas": 3}],
    "maximumRuntimeMinutes": 90,
}


def _state_reason(run: RunResource, outputs: Properties, inputs: Properties = _INPUTS) -> str:
    change = run.diff(_call(), _INPUTS, outputs, inputs).changes["state"]
    assert change.replaces
    return change.reason


def test_a_run_that_up_saw_fail_is_started_again_by_an_up_that_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    run, failed = _failed(started_at=_BEGAN)
    assert f"{RETRY_FAILED}=1" in failed.remedy
    live = run.read(_call(), "id", failed.outputs, _INPUTS)
    assert live is not None
    monkeypatch.setenv(RETRY_FAILED, "1")
    for outputs in (failed.outputs, live.outputs):
        assert _state_reason(run, outputs).startswith("failed in an earlier `up`: starts again, ")
    _, failed = _failed(started_at=_BEGAN)
    assert failed.remedy == "Correct the cause; the next `up` starts the run again."


@pytest.mark.parametrize(
    ("inputs", "cost"),
    [
        (_LARGE, "at most 6 node-hours (4 nodes x 1.5 hours)"),
        ({**_LARGE, "nodes": [{"name": "main"}]}, "at most 1.5 node-hours (1 node x 1.5 hours)"),
        (_INPUTS, "without a limit in time (1 node, no maximum runtime)"),
    ],
)
def test_what_starting_a_failed_run_again_costs_at_most_is_said(
    monkeypatch: pytest.MonkeyPatch, inputs: Properties, cost: str
) -> None:
    monkeypatch.setenv(RETRY_FAILED, "1")
    for told, what in (({"started_at": _BEGAN}, "in an earlier `up`"), ({}, "before it began")):
        run, failed = _failed(**told)
        assert _state_reason(run, failed.outputs, inputs) == f"failed {what}: starts again, {cost}"


def test_a_failed_run_of_an_older_state_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run, failed = _failed(started_at=_BEGAN)
    older = {key: value for key, value in failed.outputs.items() if not key.startswith("__")}
    monkeypatch.setenv(RETRY_FAILED, "1")
    assert run.diff(_call(), _INPUTS, older, _INPUTS).replaces == []


def test_a_run_that_somebody_cancelled_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RETRY_FAILED, "1")
    run = RunResource(lambda: _Only(_Here(state="CANCELED", started_at=_BEGAN)))
    with pytest.raises(PartialFailureError, match="somebody cancelled it") as failed:
        run.create(_call(), _INPUTS)
    assert "the next `up`" not in failed.value.remedy
    assert run.diff(_call(), _INPUTS, failed.value.outputs, _INPUTS).replaces == []


def test_another_tag_does_not_hide_that_up_saw_the_run_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """`until` was reached, then the run failed, and `trainyard up` saw it."""
    run = RunResource(lambda: _Only(_Here(state="FAILED", started_at=_BEGAN)))
    before: Properties = {
        **_INPUTS, "until": "started", "state": "FAILED", "__reached": "started", "__failed": True,
        "nodeRuns": [{"name": "main", "id": "id", "state": "FAILED", "details": ""}],
    }  # fmt: skip
    old, new = {**_INPUTS, "until": "started"}, {**_INPUTS, "until": "started", "tags": {"team": "other"}}
    after = run.update(_call(), "id", before, old, new)
    monkeypatch.setenv(RETRY_FAILED, "1")
    assert run.diff(_call(), new, after, new).replaces == ["state"]


def test_a_run_that_up_now_waits_for_and_that_never_began_is_started_at_once() -> None:
    """To wait for it would only repeat why it failed then, such as an environment that is made since."""
    told = "The image pytorch needs the local environment pytorch: it has not been made."
    accepted, started = {**_INPUTS, "until": "accepted"}, {**_INPUTS, "until": "started"}
    made = RunResource(lambda: _Only(_Here(state="ACCEPTED"))).create(_call(), accepted)
    run = RunResource(lambda: _Only(_Here(state="FAILED", details=told)))
    assert run.diff(_call(), accepted, made.outputs, accepted).changes == {}, "nobody waits for it"
    diff = run.diff(_call(), accepted, made.outputs, started)
    assert diff.replaces == ["state"]
    assert diff.changes["state"].reason.startswith("failed before it began: starts again, ")
    began = RunResource(lambda: _Only(_Here(state="FAILED", details=told, started_at=_BEGAN)))
    assert began.diff(_call(), accepted, made.outputs, started).replaces == [], "it may have trained"
    gone = RunResource(lambda: _Only(_Here(state="DELETED")))
    assert gone.diff(_call(), accepted, made.outputs, started).replaces == [], "nobody knows whether it began"


class _Tried(_Here):
    """A try of the same job is alive."""

    def __init__(self) -> None:
        super().__init__(state="FAILED", details="Out of host capacity")
        self.cancelled: list[NodeRun] = []

    def tries(self, call: Call, inputs: Properties, patiently: bool) -> list[Try]:
        return [Try("job/try-one", "", (NodeRun("main", "try", "IN_PROGRESS"),))]

    def cancel(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        self.cancelled += nodes

    def release(self, call: Call, nodes: Sequence[NodeRun]) -> None: ...


def test_a_failed_run_that_starts_again_ends_no_try() -> None:
    here = _Tried()
    run = RunResource(lambda: _Only(here))
    with pytest.raises(PartialFailureError) as failed:
        run.create(_call(), _INPUTS)
    assert run.diff(_call(), _INPUTS, failed.value.outputs, _INPUTS).replaces == ["state"]
    run.delete(_call(), "id", failed.value.outputs, _INPUTS)
    assert here.cancelled == []
