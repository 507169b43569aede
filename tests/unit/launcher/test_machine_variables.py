# SPDX-License-Identifier: Apache-2.0
"""Variables of frameworks that depend on the machine, and so are not in the launch document."""

from __future__ import annotations

import importlib.util
import json
from importlib.machinery import ModuleSpec

import pytest

from launcher import frameworks
from launcher.devices import Gpus
from launcher.document import Launch, read_launch
from tests.support.examples import plan


def launch(example: str) -> Launch:
    (job,) = plan(example).jobs.values()
    return read_launch({"TRAINYARD_LAUNCH": json.dumps(dict(job.runs["base"].nodes[0].launch))})


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    found = [False]
    monkeypatch.setattr(Gpus, "readable", property(lambda _: found[0]))
    return found


def test_accelerate_is_told_that_there_is_no_gpu(gpus: list[bool]) -> None:
    job = launch("oci-accelerate")
    assert frameworks.framework_variables(job, {}) == {"ACCELERATE_USE_CPU": "true"}
    assert frameworks.framework_variables(job, {"ACCELERATE_USE_CPU": "false"}) == {}, "what the job says counts"
    gpus[0] = True
    assert frameworks.framework_variables(job, {}) == {}


def test_keras_2_trains_on_several_workers_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    several, one = launch("oci-tensorflow-multi-worker"), launch("oci-tensorflow-mirrored")
    installed = [ModuleSpec("tf_keras", None)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: next(iter(installed), None))
    assert frameworks.framework_variables(several, {}) == {"TF_USE_LEGACY_KERAS": "1"}
    assert frameworks.framework_variables(several, {"TF_USE_LEGACY_KERAS": "0"}) == {}, "what the job says counts"
    assert frameworks.framework_variables(one, {}) == {}, "Keras 3 trains there"
    installed.clear()
    assert frameworks.framework_variables(several, {}) == {}


def test_other_frameworks_get_no_machine_variables(gpus: list[bool]) -> None:
    assert not gpus[0]
    assert frameworks.framework_variables(launch("oci-pytorch-ddp"), {}) == {}
