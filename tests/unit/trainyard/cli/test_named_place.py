# SPDX-License-Identifier: Apache-2.0
"""`up`, `preview` and `down` take a stack by its name or by its file, as all other commands do."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from trainyard.cli.main import main
from trainyard.local.places import own_command, project_stacks, stacks_words


@pytest.mark.parametrize("command", ["up", "preview", "down"])
@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("{}/Pulumi.demo.yaml", "no stack `demo` in {}/: name its file, or its folder with --stacks DIR"),
        ("{}/demo.yaml", "`{}/demo.yaml` is not the name of a stack file, `Pulumi.STACK.yaml`"),
        ("{}/demo", "`{}/demo` is not the name of a stack file, `Pulumi.STACK.yaml`"),
    ],
)
def test_a_stack_is_named_by_its_file(
    command: str, named: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainyard.local.local_stack.LocalStack.stacks", lambda self: [])
    monkeypatch.setattr("trainyard.local.local_stack.local_stack_environment", lambda *_: {})
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


_STACK = "config:\n  trainyard:team: vision\n"


def test_stack_files_here_or_in_stacks_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a project of trainyard. Another project, and stack files of it, name nothing."""
    (tmp_path / "Pulumi.yaml").write_text("name: website\nstackConfigDir: config\n")
    (tmp_path / "Pulumi.site.yaml").write_text("config:\n  website:domain: example.com\n")
    (tmp_path / "stacks").mkdir()
    monkeypatch.chdir(tmp_path)
    assert (project_stacks() / "Pulumi.local.yaml").is_file(), "trainyard's own"
    (tmp_path / "stacks" / "Pulumi.mine.yaml").write_text(_STACK)
    assert project_stacks() == Path("stacks")
    (tmp_path / "Pulumi.mine.yaml").write_text(_STACK)
    assert project_stacks() == Path()


def test_stack_files_here_come_before_the_project_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nstackConfigDir: stacks\n")
    (first := tmp_path / "first").mkdir()
    (first / "Pulumi.first.yaml").write_text(_STACK)
    monkeypatch.chdir(first)
    done = CliRunner().invoke(main, ["check"])
    assert "Pulumi.first.yaml" in done.output, done.output
    assert "Pulumi.local.yaml" not in done.output
    assert stacks_words(first) == [], "found from here"
    monkeypatch.chdir(tmp_path)
    assert stacks_words(first) == ["--stacks", str(first)]


@pytest.mark.parametrize("command", ["up {} --local", "check {}", "plan {}"])
def test_a_file_elsewhere_is_named_with_the_option_that_finds_it(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainyard.local.local_stack.LocalStack.stacks", lambda self: [])
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nstackConfigDir: teams\n")
    (tmp_path / "Pulumi.mine.yaml").write_text(_STACK)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, command.format("mine"))
    assert "its file is in ./: add --stacks .\n" in done.output, done.output
    done = CliRunner().invoke(main, command.format("local"))
    assert "/stacks/: add --stacks /" in done.output, done.output


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
