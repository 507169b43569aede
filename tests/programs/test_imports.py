# SPDX-License-Identifier: Apache-2.0
"""A program imports only the modules of pulumi_oci for the resources that it makes, and only their types."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from components.program import STACKS
from tests.support.examples import stack_file

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import asyncio, json, sys
from pathlib import Path
import pulumi
from components.program import run
from tests.support.recorder.answers import Cloud
from trainyard.review.monitor import read_stack_configuration

file = Path(sys.argv[1])
pulumi.runtime.set_mocks(Cloud(True, {}), project="trainyard", stack=sys.argv[2], preview=True, organization="o")
pulumi.runtime.set_all_config(*read_stack_configuration(file))
asyncio.get_event_loop().run_until_complete(pulumi.runtime.stack.run_pulumi_func(run))
print(json.dumps([name for name in sys.modules if name.startswith("pulumi_oci.") and name.count(".") > 1]))
"""


def test_a_preview_imports_only_the_modules_of_its_resources(tmp_path: Path) -> None:
    """Whole packages have 1,500 modules; importing the types of `identity` alone took a sixth of a program's time."""
    file = stack_file("oci-dask-ml")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file), "oci-dask-ml"], cwd=tmp_path, check=True, capture_output=True,
        text=True, env={**os.environ, "PYTHONPATH": str(ROOT), STACKS: str(file.parent)},
    )  # fmt: skip
    modules = json.loads(done.stdout.splitlines()[-1])
    assert "pulumi_oci.identity.policy" in modules
    assert [name for name in modules if name.startswith("pulumi_oci.identity.") and name.endswith("puts")] == []
    assert len(modules) < 40
