# SPDX-License-Identifier: Apache-2.0
"""`up`, `preview` and `down` take a stack by its name or by its file, as all other commands do."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from trainyard.cli.main import main
from trainyard.cli.planning import project_stacks
from trainyard.cli.up_summary import own_command


@pytest.mark.parametrize("command", ["up", "preview", "down"])
@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("{}/Pulumi.demo.yaml", "there is no {}/Pulumi.demo.yaml; the stacks of {} are: none"),
        ("{}/demo.yaml", "`{}/demo.yaml` is not the name of a stack file, `Pulumi.STACK.yaml`"),
        ("{}/demo", "`{}/demo` is not the name of a stack file, `Pulumi.STACK.yaml`"),
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


def test_a_stack_is_found_by_the_project_above_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nstackConfigDir: teams\n")
    (folder := tmp_path / "teams" / "train").mkdir(parents=True)
    for place, stacks in ((tmp_path, Path("teams")), (folder, tmp_path / "teams")):
        monkeypatch.chdir(place)
        assert project_stacks() == stacks


def test_a_project_of_another_name_does_not_name_the_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: website\nstackConfigDir: config\n")
    (tmp_path / "ml" / "stacks").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "ml")
    assert project_stacks() == Path("stacks")


def test_no_project_means_the_stacks_here_or_trainyards_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (project_stacks() / "Pulumi.local.yaml").is_file()
    (tmp_path / "stacks").mkdir()
    assert project_stacks() == Path("stacks")


def test_a_project_file_that_cannot_be_read_is_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: [")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["check", "demo"])
    assert (done.exit_code, "Error: Pulumi.yaml cannot be read: " in done.output) == (2, True), done.output


def test_up_has_no_home_of_its_own(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["up", "demo", "--local", "--home", str(tmp_path)])
    assert (done.exit_code, "set TRAINYARD_HOME" in done.output) == (2, True), done.output


def test_commands_to_type_name_the_program_as_the_caller_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / ".venv" / "bin" / "trainyard"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    monkeypatch.setattr("sys.prefix", str(tmp_path / ".venv"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(tmp_path)
    assert own_command() == ".venv/bin/trainyard"
    monkeypatch.chdir(tmp_path / ".venv")
    assert own_command() == "bin/trainyard"
    monkeypatch.chdir("/")
    assert own_command() in (str(program), str(program)[1:])
    monkeypatch.setenv("PATH", str(program.parent))
    assert own_command() == "trainyard"
