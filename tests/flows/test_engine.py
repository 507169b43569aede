# SPDX-License-Identifier: Apache-2.0
"""The engine and our language host, with plain `pulumi` commands on a user's project."""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from trainyard.engine.obtain import local_stack_environment

PROJECT = Path(__file__).with_name("engine_project")
SLOW_SECONDS = 600.0

pytestmark = pytest.mark.engine


class Project:
    """A copy of the project beside this file, with a stack, a home and a Python environment of its own."""

    def __init__(self, root: Path) -> None:
        shutil.copytree(PROJECT, root / "notes")
        self.program = root / "notes" / "program"
        self.pack = root / "notes" / "pack"
        self.note = root / "note.txt"
        # A link for `virtualenv: .venv`, so that the SDK need not be installed again.
        (self.program / ".venv").symlink_to(sys.prefix)
        self.home = root / "home"
        self.env = local_stack_environment(self.home) | {
            "PULUMI_OPTION_COLOR": "never",
            "PULUMI_OPTION_NON_INTERACTIVE": "true",
        }
        self.pulumi("stack", "init", "dev")
        self.configure("path", str(self.note))
        self.configure("text", "buy milk", "--secret")

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["pulumi", *words], cwd=self.program, env=self.env, capture_output=True, text=True, timeout=SLOW_SECONDS
        )

    def pulumi(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def configure(self, key: str, value: str, *options: str) -> None:
        self.pulumi("config", "set", key, value, "--stack", "dev", *options)

    def needs_our_host(self) -> None:
        if not (self.home / "bin" / "trainyard-language-python").exists():
            pytest.skip("Pulumi's own language host is installed: what ours says in its place cannot be seen")

    def outputs(self) -> dict[str, object]:
        values: dict[str, object] = json.loads(self.run("stack", "output", "--json", "--show-secrets").stdout)
        return values


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def start(project: Project) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts `pulumi` without waiting for it; whatever still runs of it afterwards is ended."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str, starter: Sequence[str] = ()) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [*starter, "pulumi", *words], cwd=project.program, env=project.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            for child in psutil.Process(process.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
            process.kill()
        process.communicate()


def test_a_stack_is_created_updated_and_destroyed(project: Project) -> None:
    assert "PASSPHRASE" not in project.pulumi("preview", "--diff")
    assert not project.note.exists()
    said = project.pulumi("up", "--yes")
    assert project.note.read_text() == "buy milk"
    assert "hello from stdout" in said
    assert "buy milk" not in said
    assert "warning" not in said
    assert project.outputs() == {"text": "buy milk", "length": 8, "root": str(project.program)}
    assert (project.program / "stacks" / "Pulumi.dev.yaml").is_file()
    project.pulumi("preview", "--expect-no-changes")
    project.pulumi("destroy", "--yes")
    assert not project.note.exists()


def test_a_policy_pack_accepts_and_refuses_resources(project: Project) -> None:
    pack = ("--policy-pack", str(project.pack))
    assert "manners" in project.pulumi("preview", *pack)
    project.configure("text", "BUY MILK", "--secret")
    for command in (("preview",), ("up", "--yes")):
        stopped = project.run(*command, *pack)
        assert stopped.returncode != 0
        assert "shouting in a note" in stopped.stdout
    assert not project.note.exists()


@pytest.mark.parametrize(
    ("mode", "shown"), [("run-error", "there is no more paper"), ("exception", "KeyError: 'no such page'")]
)
def test_an_error_of_the_program_is_shown_once(project: Project, mode: str, shown: str) -> None:
    project.needs_our_host()
    project.configure("mode", mode)
    failed = project.run("preview")
    said = failed.stdout + failed.stderr
    assert failed.returncode != 0
    assert said.partition("Diagnostics:")[2].count(shown) == 1
    assert "exited with" not in said
    assert ("Traceback" in said) == (mode == "exception")
    assert "runpy" not in said
    assert "trainyard/engine/program.py" not in said


def test_a_stack_file_too_large_for_providers_gives_a_clear_error(project: Project) -> None:
    project.needs_our_host()
    # Not by argument: those have the same limit as environment variables.
    stack_file = project.program / "stacks" / "Pulumi.dev.yaml"
    stack_file.write_text(stack_file.read_text() + f"  notes:large: {'x' * 200_000}\n")
    failed = project.run("preview")
    assert failed.returncode != 0
    assert "200000 characters of config" in failed.stdout
    assert "Linux allows 128 KiB there" in failed.stdout


def test_a_dynamic_provider_runs(project: Project) -> None:
    project.configure("mode", "dynamic")
    project.pulumi("up", "--yes")
    assert project.outputs()["count"] == 42


def test_a_missing_virtual_environment_gives_a_remedy(project: Project) -> None:
    project.needs_our_host()
    (project.program / ".venv").unlink()
    failed = project.run("preview")
    said = failed.stdout + failed.stderr
    assert failed.returncode != 0
    assert f"{project.program / '.venv'}, which doesn't exist" in said
    assert "python3 -I -m venv" in said
    assert "Traceback" not in said


def test_install_makes_the_virtual_environment(project: Project) -> None:
    (project.program / ".venv").unlink()
    (project.program / "requirements.txt").write_text("# nothing but what every environment has\npip\n")
    project.pulumi("install", "--no-plugins")
    assert (project.program / ".venv" / "bin" / "python").exists()


def test_about_names_the_python_and_its_packages(project: Project) -> None:
    about = json.loads(project.run("about", "--json").stdout)
    assert about["runtime"]["executable"] == str(project.program / ".venv/bin/python")
    assert "pytest-xdist" in [package["name"] for package in about["dependencies"]]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_engine(
    project: Project, start: Callable[..., "subprocess.Popen[str]"], number: signal.Signals
) -> None:
    project.configure("mode", "wait")
    project.configure("ends", str(project.note.with_name("never")))
    pulumi = start("up", "--yes", "--skip-preview")
    assert pulumi.stdout
    for line in pulumi.stdout:
        if "waiting" in line:
            break
    family = psutil.Process(pulumi.pid).children(recursive=True)
    assert len(family) >= 2, family
    pulumi.send_signal(number)
    pulumi.wait(SLOW_SECONDS)
    _, alive = psutil.wait_procs(family, timeout=SLOW_SECONDS)
    assert not alive


def test_under_nohup_a_closed_terminal_ends_nothing(
    project: Project, start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    ends = tmp_path / "ends"
    project.configure("mode", "wait")
    project.configure("ends", str(ends))
    pulumi = start("up", "--yes", "--skip-preview", starter=("bash", "-c", 'trap "" HUP; exec "$@"', "-"))
    assert pulumi.stdout
    for line in pulumi.stdout:
        if "waiting" in line:
            break
    for process in [psutil.Process(pulumi.pid), *psutil.Process(pulumi.pid).children(recursive=True)]:
        process.send_signal(signal.SIGHUP)
    ends.touch()
    said, _ = pulumi.communicate(timeout=SLOW_SECONDS)
    assert pulumi.returncode == 0, said
