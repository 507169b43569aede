# SPDX-License-Identifier: Apache-2.0
"""A value in Pulumi.yaml that the engine would give a stack is refused by both doors, unless the stack has its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from schemas.judge import judge_file
from schemas.load import load_config, load_file
from tests.support.examples import STACKS


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    file = tmp_path / "stacks/Pulumi.local.yaml"
    file.parent.mkdir()
    document = yaml.safe_load((STACKS / "Pulumi.oci-platform.yaml").read_text())
    document["config"].pop("trainyard:logs", None)
    file.write_text(yaml.safe_dump(document))
    return file


def findings(stack: Path, project: str, name: str = "trainyard", folder: str = "stacks") -> list[str]:
    text = f"name: {name}\nruntime: python\nstackConfigDir: {folder}\nconfig:\n{project}\n"
    (stack.parents[1] / "Pulumi.yaml").write_text(text)
    return [finding.message for finding in load_file(stack).findings if finding.code == "TY0000"]


@pytest.mark.parametrize(
    "project",
    [
        "  trainyard:logs: { value: { enabled: false } }",
        "  trainyard:logs: { default: { enabled: false } }",
        "  logs: { value: { enabled: false }, secret: true }",
        "  logs: text",
        "  logs: [1]",
    ],
)
def test_a_value_that_only_the_engine_takes_is_refused_with_its_line(project: str, stack: Path) -> None:
    (message,) = findings(stack, project)
    assert message.startswith("`trainyard:logs` has its value in ../Pulumi.yaml, line 5: ")
    assert judge_file(stack).errors
    values = {key: value if isinstance(value, str) else yaml.safe_dump(value, default_flow_style=True)
              for key, value in yaml.safe_load(stack.read_text())["config"].items()}  # fmt: skip
    by_engine = load_config({**values, "trainyard:logs": "{}"}, (), "local", stack)
    assert "TY0000" in {finding.code for finding in by_engine.findings}


@pytest.mark.parametrize(
    "project",
    [
        "  trainyard:team: { value: other }",
        "  team: other",
        "  logs: { type: object, description: what it is }",
        "  aws:region: { value: us-east-1 }",
        "  null",
    ],
)
def test_what_changes_no_key_of_the_stack_is_let_through(project: str, stack: Path) -> None:
    assert findings(stack, project) == []


def test_only_the_project_by_which_the_engine_finds_the_file_counts(stack: Path) -> None:
    value = "  trainyard:logs: { value: { enabled: false } }"
    assert findings(stack, value, name="website") == []
    assert findings(stack, value, folder="environments") == []
    assert findings(stack, value, folder="./stacks/")
