# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given

from components.oci.stack import OciStack, Vault
from schemas.convert import ShapeError, camel_case, seal_secrets, structure_model, unstructure_model
from schemas.model import Code, Git, Job, PortRange, Role, Run, Secret, Shape
from tests.support.stack_strategies import stacks

JOB = {"framework": "pytorch", "image": "i:1", "shape": "VM.GPU.A10.1", "roles": {"main": 1}, "command": "train.py"}


def test_keys_are_camel_case() -> None:
    assert camel_case("maximum_runtime_minutes") == "maximumRuntimeMinutes"
    assert camel_case("memory_gb") == "memoryGb"


def test_shorthands_become_values() -> None:
    job = structure_model(
        Job, {**JOB, "code": "./train", "ports": {"a": 8786, "b": "8700-8800", "c": "3000:3100", "d": "all"}}
    )
    assert job.shape == Shape("VM.GPU.A10.1")
    assert job.roles == {"main": Role(1)}
    assert job.code == Code(folder="./train")
    assert job.ports == {"a": PortRange(8786, 8786), "b": PortRange(8700, 8800), "c": PortRange(3000, 3100), "d": "all"}


def test_nested_values_and_defaults() -> None:
    job = structure_model(Job, {**JOB, "code": {"git": {"url": "u"}}, "runs": {"base": {}, "two": {"args": ["x"]}}})
    assert job.code == Code(git=Git("u"))
    assert job.runs == {"base": Run(), "two": Run(args=("x",))}
    assert job.layout == "run-per-node"


def test_secrets_keep_their_value_and_never_show_it() -> None:
    job = structure_model(Job, {**JOB, "env": {"A": "plain", "B": {"secure": "hidden"}}})
    secret = job.env["B"]
    assert isinstance(secret, Secret)
    assert secret.value == "hidden"
    assert "hidden" not in repr(job)


def test_types_are_not_mixed_up() -> None:
    options = structure_model(Job, {**JOB, "options": {"a": True, "b": 1, "c": 1.5, "d": "x"}}).options
    assert [type(value) for value in options.values()] == [bool, int, float, str]
    assert structure_model(Shape, {"name": "F", "ocpus": 4}).ocpus == 4.0
    assert structure_model(Role, {"replicas": 4.0}).replicas == 4


@pytest.mark.parametrize(
    "value", [{}, {**JOB, "framework": 1}, {**JOB, "unknown": 1}, {**JOB, "roles": []}, {**JOB, "layout": "x"}, 7, None]
)
def test_what_does_not_fit_is_refused(value: object) -> None:
    with pytest.raises(ShapeError):
        structure_model(Job, value)


def test_seal_wraps_every_place_a_secret_may_stand_and_no_other() -> None:
    jobs = {
        "a": {"env": {"X": "1"}, "command": "c", "roles": {"main": {"replicas": 1, "env": {"Y": "2"}}, "worker": 2}}
    }
    sealed = seal_secrets(OciStack, {"jobs": jobs})["jobs"]["a"]
    assert sealed["env"] == {"X": {"secure": "1"}}
    assert sealed["roles"] == {"main": {"replicas": 1, "env": {"Y": {"secure": "2"}}}, "worker": 2}
    assert sealed["command"] == "c"
    assert seal_secrets(Vault | None, {"key": "k", "secrets": {"s": "v"}}) == {
        "key": "k",
        "secrets": {"s": {"secure": "v"}},
    }


@given(stacks)
def test_what_the_model_writes_is_the_same_model_again(stack: OciStack) -> None:
    assert structure_model(OciStack, unstructure_model(stack)) == stack
