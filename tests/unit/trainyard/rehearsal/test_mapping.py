# SPDX-License-Identifier: Apache-2.0
"""The mapped stack of a rehearsal: valid for every example, small, with all differences listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalog.platforms import require_capability
from components.oci.local.people import SMALL_SHAPE, small_shapes
from components.oci.local.rehearsal import planned_needs
from components.oci.plan import OciPlan, oci_plan
from components.plan.build import plan_file, plan_of
from components.platform.rehearsal import RehearsalPlatform, RehearsedConfig
from schemas.judge import Judged, judge_config
from tests.support.examples import EXAMPLES, STACKS, plan, stack_file
from trainyard.rehearsal.mapping import map_config, stand_in_stack, without_runs

OCI = [name for name in EXAMPLES if plan(name).platform == "oci"]


def written(name: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(stack_file(name).read_text())["config"]
    return config


def made(name: str, nodes: int | None = None, **programs: str) -> RehearsedConfig:
    return map_config(written(name), plan(name), nodes, programs, small_shapes)


def judged(config: dict[str, Any], name: str) -> Judged:
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    secret = {key for key, value in config.items() if '"secure"' in json.dumps(value)}
    return judge_config(texts, secret, name, STACKS / f"Pulumi.{name}.yaml")


def again(config: dict[str, Any], name: str) -> OciPlan:
    return oci_plan(plan_of(judged(config, name)))


@pytest.mark.parametrize("name", OCI)
def test_the_mapped_stack_is_valid_and_the_file_is_unchanged(name: str) -> None:
    before = written(name)
    small = again(made(name).config, name)
    assert written(name) == before
    for job in small.jobs.values():
        assert job.nodes == plan(name).jobs[job.name].nodes
        assert job.shape.name == SMALL_SHAPE["name"]
    assert planned_needs(small).rules == planned_needs(plan(name)).rules, "the very rules of the plan"


@pytest.mark.parametrize("name", OCI)
def test_fewer_nodes_leave_every_role_one(name: str) -> None:
    small = again(made(name, 2).config, name)
    for job in small.jobs.values():
        had = plan(name).jobs[job.name]
        assert [role.name for role in job.roles] == [role.name for role in had.roles]
        assert job.nodes == max(min(2, had.nodes), len(had.roles))


def test_the_stack_is_first_mapped_without_runs() -> None:
    bare = without_runs(made("oci-dask-lightgbm").config)
    assert not again(bare, "oci-dask-lightgbm").jobs["lightgbm"].runs


def test_a_missing_gpu_is_a_difference() -> None:
    ddp = made("oci-pytorch-ddp")
    assert any("GPU" in one for one in ddp.differences)
    assert all("NCCL" in reason or "nccl" in reason for reasons in ddp.not_rehearsed.values() for reason in reasons)


def test_a_program_takes_the_place_of_code_and_commands() -> None:
    lightgbm = made("oci-dask-lightgbm", None, lightgbm="./code/lightgbm")
    entry = lightgbm.config["trainyard:jobs"]["lightgbm"]
    assert (entry["code"], entry["command"]) == ("./code/lightgbm", "train.py")
    assert not any("args" in (run or {}) for run in entry["runs"].values())
    assert any("built-in" in one for one in lightgbm.differences)


def test_an_image_of_another_registry_is_replaced() -> None:
    config = written("oci-pytorch-ddp")
    config["trainyard:jobs"]["resnet"]["image"] = "iad.ocir.io/others/vision/torch:2"
    foreign = again(config, "oci-pytorch-ddp")
    here = map_config(config, foreign, None, {}, small_shapes)
    assert here.config["trainyard:jobs"]["resnet"]["image"] == "${registry}:rehearsal-resnet"
    assert any("iad.ocir.io/others/vision/torch:2 is not pulled" in one for one in here.differences)


def test_a_group_of_an_identity_domain_is_one_of_the_only_domain_here() -> None:
    config = {**written("oci-dask-ml"), "trainyard:access": {"users": {"group": "Engineering/scientists"}}}
    here = map_config(config, plan("oci-dask-ml"), None, {}, small_shapes)
    assert here.config["trainyard:access"]["users"]["group"] == "scientists"
    assert any("Engineering" in one for one in here.differences)


def test_the_stand_in_for_a_used_stack_opens_the_needed_ports(tmp_path: Path) -> None:
    used = stand_in_stack(
        plan("oci-team"), written("oci-team"), require_capability("oci", RehearsalPlatform).place_keys
    )
    (tmp_path / "Pulumi.yaml").write_text("name: p\n")
    found = judged(used, "oci-platform")
    assert found.errors == ()
    opened = {rule.ports for rule in planned_needs(oci_plan(plan_of(found))).rules}
    needed = {rule.ports for rule in planned_needs(plan("oci-team")).rules}
    assert needed <= opened


def test_the_stand_in_of_a_stack_is_one_of_its_own_platform(tmp_path: Path) -> None:
    """It has the keys that say where the stack is, and no keys of another platform."""
    (tmp_path / "Pulumi.yaml").write_text("name: p\n")
    name = "aws-dl1-resnet"
    keys = require_capability("aws-dl1", RehearsalPlatform).place_keys
    stand_in = stand_in_stack(plan_file(stack_file(name), print), written(name), keys)
    assert (stand_in["trainyard:platform"], stand_in["aws:region"]) == ("aws-dl1", "us-east-1")
    assert stand_in["trainyard:account"] == "123456789012"
    assert "oci:region" not in stand_in
    assert judged(stand_in, "network").errors == ()
