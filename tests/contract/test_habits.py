# SPDX-License-Identifier: Apache-2.0
"""Files such as the Makefile and the editor's settings do what engineers expect."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_uses_an_installed_tool_and_passes_here(hook: dict[str, Any]) -> None:
    """Without the import contracts, which `make check` checks separately."""
    program, *words = shlex.split(hook["entry"])
    files = {
        "format": ["__main__.py", "--check"],
        "lint": ["__main__.py"],
        "stack-files": ["stacks/Pulumi.local.yaml"],
        "spelling": ["README.md"],
    }
    assert program.startswith(".venv/bin/")
    here = Path(sys.executable).with_name(Path(program).name)
    assert here.exists()
    if hook["id"] == "borders":
        return
    done = subprocess.run([str(here), *words, *files.get(hook["id"], ())], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_runs_what_people_type_and_holds_no_key() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    steps = workflow["jobs"]["test"]["steps"]
    assert steps[-1]["run"] == ".ci/run"
    assert workflow["permissions"] == {"contents": "read"}
    checkout = next(step for step in steps if step.get("uses", "").startswith("actions/checkout"))
    assert checkout["with"]["persist-credentials"] is False
    assert "pull_request_target" not in workflow[True]  # YAML 1.1 reads the key `on` so


def test_code_owners_name_existing_paths() -> None:
    rows = [line.split()[0] for line in (ROOT / ".github/CODEOWNERS").read_text().splitlines() if line[:1] in "/*"]
    assert [row for row in rows if row != "*" and not (ROOT / row.strip("/")).exists()] == []
