# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.oci.stack import OciStack
from schemas.judge import judge_config, judge_file
from schemas.load import load_config, load_file, stack_name
from schemas.model import Secret
from tests.support.stack_strategies import as_config, as_pulumi, stacks

EXAMPLES = sorted((Path(__file__).parents[3] / "stacks").glob("Pulumi.*.yaml"))
CONFIG = {
    "oci:region": "us-ashburn-1",
    "trainyard:team": "vision",
    "trainyard:environment": "dev",
    "trainyard:jobs": {
        "resnet": {
            "framework": "pytorch",
            "image": "${registry}:1",
            "shape": "VM.GPU.A10.1",
            "roles": {"main": {"replicas": 1, "env": {"KEY": {"secure": "v1:x"}}}},
            "command": "train.py",
            "env": {"PLAIN": "p", "TOKEN": {"secure": "v1:y"}},
        }
    },
}


def write(folder: Path | str, config: object) -> Path:
    file = Path(folder) / "Pulumi.test.yaml"
    file.write_text(json.dumps({"config": config}, ensure_ascii=False, indent=1), "utf-8")
    return file


def test_the_name_of_a_stack_is_in_its_file_s_name() -> None:
    assert stack_name(Path("stacks/Pulumi.oci-dask.yaml")) == "oci-dask"
    assert stack_name(Path("other.yaml")) == "other"


def test_the_file_door_keeps_ciphertext_out(tmp_path: Path) -> None:
    stack = load_file(write(tmp_path, CONFIG)).stack
    assert stack is not None
    token = stack.jobs["resnet"].env["TOKEN"]
    assert isinstance(token, Secret)
    assert token.value is None


def test_a_configuration_that_the_engine_could_not_pass_on_is_a_finding(tmp_path: Path) -> None:
    job = CONFIG["trainyard:jobs"]["resnet"]  # type: ignore[index]
    large = CONFIG | {"trainyard:jobs": {"resnet": job | {"env": {f"V{n}": "x" * 100 for n in range(1200)}}}}
    found = load_file(write(tmp_path, large)).findings
    assert [(finding.code, finding.path) for finding in found] == [("TY017", ("config",))]
    assert "split the jobs" in found[0].remedy


def test_the_config_door_has_values_and_the_same_stack(tmp_path: Path) -> None:
    file = write(tmp_path, CONFIG)
    values, secret = as_pulumi(CONFIG)
    loaded = load_config(values, secret, "test", file)
    assert loaded.stack is not None
    assert loaded.stack == load_file(file).stack
    assert loaded.stack.jobs["resnet"].env["PLAIN"] == "p"
    token = loaded.stack.jobs["resnet"].env["TOKEN"]
    assert isinstance(token, Secret)
    assert token.value == "in the clear"


def test_a_secret_key_without_file_makes_every_possible_place_secret() -> None:
    values, secret = as_pulumi(CONFIG)
    stack = load_config(values, secret, "test").stack
    assert stack is not None
    assert isinstance(stack.jobs["resnet"].env["PLAIN"], Secret)
    assert stack.jobs["resnet"].command == "train.py"


def test_an_override_wins_over_the_file(tmp_path: Path) -> None:
    values, secret = as_pulumi(CONFIG)
    loaded = load_config({**values, "trainyard:environment": "test"}, secret, "test", write(tmp_path, CONFIG))
    assert loaded.stack is not None
    assert loaded.stack.environment == "test"


def test_what_an_override_left_in_the_file_is_read_as_the_program_reads_it(tmp_path: Path) -> None:
    """`-c` is written into the stack file by Pulumi, an object as the JSON text that was given."""
    config = CONFIG | {"trainyard:network": '{"cidr": "10.99.0.0/16", "nat": true}', "trainyard:tags": '{"a": "b"}'}
    file = write(tmp_path, config)
    values, secret = as_pulumi(config)
    assert values["trainyard:network"] == '{"cidr": "10.99.0.0/16", "nat": true}'
    by_file, by_config = load_file(file), load_config(values, secret, "test", file)
    assert by_file.findings == by_config.findings == ()
    assert by_file.stack is not None
    assert by_file.stack == by_config.stack
    assert by_file.stack.network.nat
    wrong = CONFIG | {"trainyard:network": '{"cidr": 10}', "trainyard:tags": "no JSON"}
    found = load_file(write(tmp_path, wrong)).findings
    assert [finding.code for finding in found] == ["TY011", "TY011"]
    assert found == load_config(*as_pulumi(wrong), "test", tmp_path / "Pulumi.test.yaml").findings


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_none(tmp_path: Path, number: str) -> None:
    """Python's JSON reads it; no other program would, and the launch document could not hold it."""
    found = load_file(write(tmp_path, CONFIG | {"trainyard:network": f'{{"nat": true, "cidr": {number}}}'}))
    assert [(finding.code, finding.path[-1]) for finding in found.findings] == [("TY011", "trainyard:network")]
    assert found.findings[0].line


def test_findings_of_the_config_door_have_the_file_s_lines(tmp_path: Path) -> None:
    file = write(tmp_path, CONFIG)
    values, secret = as_pulumi(CONFIG)
    judged = judge_config({**values, "trainyard:team": "Vision"}, secret, "test", file)
    shape = [(one.code, one.line, one.file) for one in judged.findings if one.code.startswith("TY0")]
    assert shape == [("TY014", 4, str(file))]


def test_without_a_file_findings_name_the_stack() -> None:
    judged = judge_config({"trainyard:jobs": "no json", "trainyard:tags": "null"}, (), "test")
    assert {one.code for one in judged.findings if one.code.startswith("TY0")} == {"TY011", "TY012"}
    assert {finding.file for finding in judged.findings} == {"the configuration of stack test"}


def test_a_secret_where_none_may_stand_is_found_at_both_doors(tmp_path: Path) -> None:
    config = {**CONFIG, "trainyard:tags": {"secure": "v1:z"}}
    file = write(tmp_path, config)
    values, secret = as_pulumi(config)
    assert load_file(file).stack is None
    assert load_config(values, secret, "test", file).stack is None


def test_a_role_may_be_named_secure(tmp_path: Path) -> None:
    """To Pulumi, `secure:` without a text below is no secret. Jobs, runs and variables may not have the name."""
    (job,) = CONFIG["trainyard:jobs"].values()  # type: ignore[attr-defined]
    named = CONFIG | {"trainyard:jobs": {"resnet": job | {"roles": {"secure": 1}}}}
    file = write(tmp_path, named)
    values, secret = as_pulumi(named)
    for stack in (load_file(file).stack, load_config(values, secret, "test", file).stack):
        assert stack is not None
        assert stack.jobs["resnet"].roles["secure"].replicas == 1


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_examples_pass_and_both_doors_give_one_stack(example: Path) -> None:
    judged = judge_file(example)
    # That a platform is only planned for so far is no fault of an example, nor are the keys of a second one.
    assert [one for one in judged.findings if one.code not in ("TY902", "TY018")] == []
    values, secret = as_pulumi(judged.source.data["config"])
    assert judge_config(values, secret, stack_name(example), example).stack == judged.stack


@given(stacks)
def test_both_doors_give_one_stack(stack: OciStack) -> None:
    config = as_config(stack)
    with tempfile.TemporaryDirectory() as folder:
        file = write(folder, config)
        by_file = load_file(file)
        values, secret = as_pulumi(config)
        by_config = load_config(values, secret, "test", file)
    assert by_file.findings == by_config.findings == ()
    assert by_file.stack == by_config.stack
    assert isinstance(by_file.stack, OciStack)
    assert as_config(by_file.stack) == config


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["framework", "roles", "main", "env", "secure", "git", "code", "ports", "options", "runs", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
keys = st.sampled_from(
    ["team", "environment", "platform", "jobs", "network", "vault", "access", "tags", "uses", "logs"]
)


@given(st.dictionaries(keys.map(lambda key: f"trainyard:{key}"), plain))
def test_no_values_make_check_raise(config: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        judged = judge_file(write(folder, config))
    assert judged.findings
    judge_config(*as_pulumi(config), "test")


@given(stacks)
def test_no_meaning_makes_check_raise(stack: OciStack) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for finding in judge_file(write(folder, as_config(stack))).findings:
            assert finding.message
            assert finding.remedy
            assert finding.line >= 1


@given(st.binary())
def test_no_bytes_make_check_raise(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "Pulumi.test.yaml"
        file.write_bytes(data)
        assert judge_file(file).findings
