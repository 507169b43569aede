# SPDX-License-Identifier: Apache-2.0
"""Every framework, started by launchers as real processes: it trains, and what it leaves is in the bucket."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from catalog import frameworks
from schemas.model import PortRange
from tests.counts import wanted
from tests.flows.launcher.nodes import Nodes, Place, free_ports, nodes
from tests.frameworks.examples import EXAMPLES, Example

LONGEST_SECONDS = 420.0
NODES = {3: list(EXAMPLES), 2: [name for name in EXAMPLES if name != "tensorflow-ps"]}


def ports_of(example: Example) -> dict[str, Any]:
    """Free ones: other tests run beside this one, on the same loopback addresses."""
    rows = [
        row for row in frameworks.framework(example.framework, example.strategy).ports if "-" not in str(row.default)
    ]
    numbers = free_ports(len(rows))
    fixed = {row.label: PortRange(number, number) for row, number in zip(rows, numbers, strict=True)}
    return {label: "all" if label == "data" else ports for label, ports in fixed.items()}


def left(place: Place, run: Nodes, name: str) -> dict[str, Any]:
    """The result a run put into the bucket."""
    found = [one for one in place.objects(f"{run.folder}/output/") if one.endswith(name)]
    assert len(found) == 1, place.objects(run.folder)
    read: dict[str, Any] = json.loads(place.content(found[0]))
    return read


CASES = [pytest.param(name, count, id=f"{name}-{count}") for count, names in NODES.items() for name in names]


@pytest.mark.parametrize(("name", "count"), CASES if wanted(0, 1) else [case for case in CASES if case.values[1] == 3])
def test_it_trains_and_leaves_its_result(place: Place, tmp_path: Path, name: str, count: int) -> None:
    example = EXAMPLES[name]
    environment = example.environment()
    shutil.copytree(example.folder, tmp_path / "code")
    job = example.job(count, **ports_of(example))
    addresses = [f"127.0.{10 + count}.{rank + 1}" for rank in range(count)]
    with nodes(
        place, tmp_path / "code", job, f"{name}-{count}", addresses=addresses,
        interpreter=str(environment.interpreter), variables={**environment.variables, "PATH": environment.path},
    ) as run:  # fmt: skip
        assert run.start().codes(LONGEST_SECONDS) == [0] * count
        assert example.result in left(place, run, "result.json")
        progress = place.status(run, 0)["progress"]
        assert progress["loss"] >= 0
