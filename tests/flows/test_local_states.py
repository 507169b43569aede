# SPDX-License-Identifier: Apache-2.0
"""Which local stacks are up, and on which platform, from states and copies of stack files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from components.platform.local import deployed_files
from trainyard.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "stacks"
PROVIDER = {"urn": "urn:pulumi:both::trainyard::pulumi:providers:trainyard::runs", "type": "pulumi:providers:trainyard"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stack `both` is up on OCI, and `gone` was taken down."""
    made = PROVIDER | {"custom": True, "id": "1", "inputs": {}}
    states = tmp_path / "pulumi" / "state" / ".pulumi" / "stacks" / "trainyard"
    copies = tmp_path / "pulumi" / "stacks"
    states.mkdir(parents=True)
    copies.mkdir()
    for stack, rows in (("both", [made]), ("gone", [])):
        (states / f"{stack}.json").write_text(json.dumps({"checkpoint": {"latest": {"resources": rows}}}))
        (copies / f"Pulumi.{stack}.yaml").write_text((EXAMPLES / "Pulumi.oci-or-openpai.yaml").read_text())
    monkeypatch.setenv("TRAINYARD_HOME", str(tmp_path))
    return tmp_path


def test_a_stack_that_is_up_has_a_copy_of_its_stack_file(home: Path) -> None:
    assert deployed_files(home / "cloud") == {"both": home / "pulumi" / "stacks" / "Pulumi.both.yaml"}


@pytest.mark.parametrize("command", ["up", "preview"])
def test_a_local_stack_does_not_move_to_another_platform(home: Path, command: str) -> None:
    """The error comes before a cloud is started, and before the copy changes from which `down` knows the platform."""
    stacks = home / "stacks"
    shutil.copytree(EXAMPLES / "examples" / "pytorch-ddp", stacks / "examples" / "pytorch-ddp")
    text = (EXAMPLES / "Pulumi.oci-or-openpai.yaml").read_text()
    (stacks / "Pulumi.both.yaml").write_text(text.replace("platform: oci", "platform: openpai"))
    done = CliRunner().invoke(main, [command, "both", "--local", "--stacks", str(stacks)])
    assert done.exit_code == 1
    assert "Pulumi.both.yaml:8: trainyard:platform: the stack is up on `oci`, and cannot move to" in done.output
    assert f"trainyard down both --local --stacks {stacks}" in done.output
    assert "platform: oci\n" in (home / "pulumi" / "stacks" / "Pulumi.both.yaml").read_text()
    assert not (home / "cloud").exists()
