# SPDX-License-Identifier: Apache-2.0
"""A broken value hides no other finding, and causes none about values that depend on it."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from schemas.judge import Judged, judge_file
from tests.support.examples import ALL_EXAMPLES, STACKS, stack_file

_SHAPE = "TY0"
# One of each platform. All of them take a minute.
ASKED = ALL_EXAMPLES if os.environ.get("TRAINYARD_TORTURE") else ["oci-tensorflow-parameter-server", "openpai-ddp-nccl"]
MOVED = """\
config:
  oci:region: us-ashburn-1
  trainyard:platform: openpai
  trainyard:team: Vision
  trainyard:environment: dev
  trainyard:jobs:
    first: &job
      framework: pytorch
      image: ${registry}:1.0
      shape: { name: VM.Standard.E4.Flex, ocpus: 1, memoryGb: 8 }
      roles: { main: 1, worker: many }
      command: train.py
      env: { PAI_JOB_NAME: mine }
      runs: { base: {} }
    second: *job
"""


def _places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if here:
        yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*here, key))


def _with(data: Any, place: tuple[Any, ...], wrong: object) -> Any:
    changed = copy.deepcopy(data)
    parent = changed
    for step in place[:-1]:
        parent = parent[step]
    parent[place[-1]] = wrong
    return changed


def _meaning(judged: Judged) -> set[tuple[str, str]]:
    return {(one.code, one.message) for one in judged.findings if not one.code.startswith(_SHAPE)}


@pytest.mark.parametrize("name", ASKED)
def test_a_broken_value_makes_no_noise(name: str, tmp_path: Path) -> None:
    """Replaces each value of a valid example, one at a time, by an invalid one."""
    data = yaml.safe_load(stack_file(name).read_text())
    before = _meaning(judge_file(stack_file(name)))
    # Folders of code are judged, too.
    for folder in ("examples", "local"):
        shutil.copytree(STACKS / folder, tmp_path / folder)
    file = tmp_path / f"Pulumi.{name}.yaml"
    for place in _places(data["config"]):
        file.write_text(yaml.safe_dump({"config": _with(data["config"], place, [[None]])}, sort_keys=False))
        assert _meaning(judge_file(file)) <= before, place


def test_everything_is_said_at_once_and_once(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.moved.yaml"
    file.write_text(MOVED)
    judged = judge_file(file)
    found = {one.code: one for one in judged.findings}
    assert len(found) == len(judged.findings), "one finding a cause"
    # A key is missing, a name and a number are malformed; and what has nothing to do with them is judged.
    assert {"TY012", "TY014", "TY011", "TY871", "TY873", "TY880", "TY888"} <= found.keys()
    assert found["TY880"].remedy == "add `trainyard:skus: { VM.Standard.E4.Flex: { cpus: 2, memoryGb: 8 } }`"
    assert found["TY873"].message.endswith("; likewise `second`")
    assert judged.stack is None
