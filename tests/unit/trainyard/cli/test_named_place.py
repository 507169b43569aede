# SPDX-License-Identifier: Apache-2.0
"""`up`, `preview` and `down` take a stack by its name or by its file, as all other commands do."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from trainyard.cli.main import main


@pytest.mark.parametrize("command", ["up", "preview", "down"])
@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("{}/Pulumi.demo.yaml", "there is no {}/Pulumi.demo.yaml; the stacks of {} are: none"),
        ("{}/demo.yaml", "`{}/demo.yaml` is not called like a stack's file, `Pulumi.STACK.yaml`"),
        ("{}/demo", "`{}/demo` is not called like a stack's file, `Pulumi.STACK.yaml`"),
    ],
)
def test_a_stack_is_named_by_its_file(
    command: str, named: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainyard.local.local_stack.LocalStack.stacks", lambda self: [])
    monkeypatch.setattr("trainyard.engine.environment", lambda *_: {})
    done = CliRunner().invoke(main, [command, named.format(tmp_path), "--local"])
    assert done.exit_code != 0
    assert told.replace("{}", str(tmp_path)) in done.output, done.output


def test_the_command_with_an_account_names_the_stack_of_the_file() -> None:
    done = CliRunner().invoke(main, ["up", "stacks/Pulumi.demo.yaml"])
    assert "pulumi up -s demo\n" in done.output
