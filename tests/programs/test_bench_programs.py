# SPDX-License-Identifier: Apache-2.0
"""The programs that the benches compare still run: a bench takes minutes, so `make test` runs none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.check import FLOOR, copies
from bench.programs import stacks
from bench.programs.flat import describe
from tests.support.recorder.client import Client

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("sdk", ["oci", "aws"])
def test_the_flat_program_makes_the_resources_of_ours(sdk: str, tmp_path: Path) -> None:
    file = stacks.write(tmp_path, 1, 2, sdk)
    with Client() as client:
        rows = describe(client.record(file, tmp_path))
    flat = tmp_path / "flat.json"
    flat.write_text(json.dumps(rows))
    command = [sys.executable, "-m", "bench.programs.once", "flat", sdk, str(flat), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["program"] > 0


def test_the_floor_of_check_accepts_every_example(tmp_path: Path) -> None:
    files = copies(tmp_path, len(list((ROOT / "stacks").glob("Pulumi.*.yaml"))))
    done = subprocess.run([sys.executable, "-c", FLOOR, *files], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
