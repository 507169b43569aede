# SPDX-License-Identifier: Apache-2.0
"""A run that fails: what it says, and whether the next `up` starts it again."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from provider.base.engine import Engine, UrnReporter
from provider.base.errors import PartialFailureError, ProviderError
from provider.base.resource import Call, Stop
from provider.base.values import Properties
from provider.runs.model import ACCESS_MINUTES, NodeRun, RunSpec
from provider.runs.platform import RunPlatform, RunPlatforms
from provider.runs.resource import RunResource

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
        self._platform: RunPlatform = platform

    def of(self, inputs: Properties, run_id: str = "") -> RunPlatform:
        return self._platform


class _Here:
    """A platform on which every run is what it is told to be."""

    def __init__(self, **told: Any) -> None:
        self._node = NodeRun("main", "id", **told)

    def ensure(self, call: Call, spec: RunSpec, known: Sequence[NodeRun]) -> Iterator[NodeRun]:
        yield self._node

    def observe(self, call: Call, nodes: Sequence[NodeRun]) -> list[NodeRun]:
        return [self._node]

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
