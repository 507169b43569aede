# SPDX-License-Identifier: Apache-2.0
"""No file of a stranger's repository runs when a command is typed there: no module of Python by the name of one that a
program of ours imports, and no repository of git that was committed among the files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud import control
from tests.support.counts import drawn, wanted
from tests.support.linking import link_or_copy
from tests.support.local_team import ONE_NODE, ROOT
from tests.support.wheels import write_wheel
from trainyard.engine.build import _go_from_pypi
from trainyard.engine.isolated import why_committed
from trainyard.engine.obtain import local_stack_environment
from trainyard.engine.tools import script_for, write_script
from trainyard.engine.versions import EngineError

ENGINE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainyard" / "engine"
# Besides the standard library's: what commands, pip, the engine's programs and the cloud's server import.
OTHERS = (
    "pip", "setuptools", "wheel", "pkg_resources", "click", "yaml", "jsonschema", "packaging", "pulumi", "grpc", "oci",
    "google", "uvicorn", "moto", "flask", "psutil", "cryptography", "dask", "numpy", "sitecustomize", "usercustomize",
    "catalog", "components", "launcher", "localcloud", "policies", "provider", "schemas", "trainyard",
)  # fmt: skip
# In this order, in one repository. The last ends what the others left.
COMMANDS = (
    "check", "plan local", "access local", "review local", "doctor", "environments", "environments make --stack local",
    "cloud start", "cloud env", "cloud env --pulumi", "preview local --local", "up local --local", "runs --local",
    "up local --local", "rehearse local", "down local --local --yes", "cloud stop",
)  # fmt: skip
# Whatever git runs because a configuration says so.
RUNS = """\
[core]
\trepositoryformatversion = 0
\tbare = {bare}
{worktree}\tfsmonitor = {program}
\thooksPath = {hooks}
\tpager = {program}
\tsshCommand = {program}
\teditor = {program}
[diff]
\texternal = {program}
[diff "x"]
\ttextconv = {program}
\tcommand = {program}
[filter "x"]
\tclean = {program}
\tsmudge = {program}
\trequired = true
[credential]
\thelper = {program}
[gpg]
\tprogram = {program}
"""
FORMS = [(place, bare) for place in ("stacks", "stacks/local", "deeper/stacks") for bare in (False, True)]
GIT = {
    **{f"GIT_{who}_{what}": "someone" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "PATH": os.environ["PATH"],
}  # fmt: skip


class Repository:
    """A team's repository as a pull request left it, with a stack, its code, and a list of packages."""

    def __init__(self, root: Path, stacks: str = "stacks") -> None:
        self.root, self.mark, self.home = root / "repository", root / "ran", root / "home"
        self.stacks = self.root / stacks
        shutil.copytree(ONE_NODE / "local", self.stacks / "local")
        text = (ONE_NODE / "Pulumi.local.yaml").read_text()
        self.file = self.stacks / "Pulumi.local.yaml"
        self.file.write_text(text.replace("code: ./local\n", "code: ./local\n      requirements: ./req.txt\n"))
        (self.stacks / "req.txt").write_text("tinypack==1.0\n")
        (self.root / "Pulumi.yaml").write_text(
            f"name: trainyard\nmain: {ROOT}\nstackConfigDir: {stacks}\nruntime: python\n"
        )

    def plant_modules(self) -> None:
        for name in sorted({*sys.stdlib_module_names, *OTHERS}):
            text = f"open({str(self.mark)!r}, 'a').write({name!r} + '\\n')\n"
            (self.root / f"{name}.py").write_text(text)

    def trainyard(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "trainyard", *words], cwd=self.root, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, env={**os.environ, "TRAINYARD_HOME": str(self.home)},
        )  # fmt: skip

    def ran(self) -> list[str]:
        return self.mark.read_text().split("\n") if self.mark.exists() else []

    def git(self, *words: str, folder: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words], cwd=folder or self.root, env={**GIT, "HOME": str(self.root.parent)}, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    wheels, cache = tmp_path / "wheels", tmp_path / "cache"
    wheels.mkdir()
    write_wheel(wheels, "tinypack", "1.0", {"tinypack/__init__.py": ""})
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(wheels), "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    made = Repository(tmp_path)
    made.plant_modules()
    yield made
    control.stop_cloud(made.home / "cloud")


def test_packages_are_installed_without_modules_of_the_current_folder(repository: Repository) -> None:
    done = repository.trainyard("environments", "make", "--stack", "local")
    assert repository.ran() == []
    assert "tinypack 1.0" in done.stdout, done.stderr


def test_go_is_installed_without_modules_of_the_current_folder(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository.root)
    with pytest.raises(EngineError, match="Go could not be installed"):
        _go_from_pypi(tmp_path / "go", os.environ)
    assert repository.ran() == []


def test_plugins_start_without_modules_of_the_current_folder(repository: Repository, tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    write_script(script, script_for("trainyard.engine.versions"))
    subprocess.run([script], cwd=repository.root, check=True)
    assert repository.ran() == []


def test_no_state_that_a_commit_brought_is_used(tmp_path: Path) -> None:
    """`.trainyard` of a clone: the local AWS in it is pickles, and the engine would start its plugins."""
    team = Repository(tmp_path)
    cloud, plugins = (team.root / ".trainyard" / name for name in ("cloud", "pulumi/plugins/resource-oci-v1.0.0"))
    for folder in (cloud / "aws", plugins):
        folder.mkdir(parents=True)
        (folder / "state.sqlite3").write_bytes(b"")
    (team.root / ".gitignore").write_text(".trainyard\n")
    team.git("init", "--quiet")
    team.git("add", "--force", "-A")
    with pytest.raises(control.CloudError, match="has files from a commit"):
        control.start_cloud(cloud)
    assert not (cloud / "server.log").exists()
    with pytest.raises(EngineError, match="has files from a commit"):
        local_stack_environment(team.root / ".trainyard")
    team.git("rm", "-r", "--quiet", "--cached", ".trainyard")
    assert not why_committed(cloud)


@pytest.mark.torture
@pytest.mark.engine
def test_no_command_runs_a_module_of_the_current_folder(repository: Repository) -> None:
    cache = Path(os.environ["XDG_CACHE_HOME"])
    shutil.copytree(ENGINE, cache / "trainyard" / "engine", copy_function=link_or_copy, symlinks=True)
    for command in COMMANDS:
        done = repository.trainyard(*command.split())
        assert repository.ran() == [], command
        assert "Traceback" not in done.stderr, command
        assert done.returncode == 0 or command in ("review local", "doctor"), (command, done.stdout + done.stderr)


@pytest.mark.parametrize(("place", "bare"), drawn(FORMS, 1))
def test_no_committed_repository_is_asked(place: str, bare: bool, tmp_path: Path) -> None:
    """A review of a branch that brought a repository of its own says what one of the same branch without it says."""
    team = Repository(tmp_path, "deeper/stacks" if place.startswith("deeper") else "stacks")
    text = team.file.read_text()
    team.file.unlink()
    team.git("init", "--quiet", "--initial-branch", "main")
    team.git("add", "-A")
    team.git("commit", "--quiet", "-m", "base")
    base = team.git("rev-parse", "HEAD")
    team.file.write_text(text)

    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho ran >>'{team.mark}'\ncat\n")
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        shutil.copy(program, hooks / name)
    # Its branches and its commit of the base's hash are forged: they have the stack already.
    forged, inside = tmp_path / "forged", team.root / place
    shutil.copytree(inside, forged)
    git = ["-c", "init.defaultBranch=main"]
    team.git(*git, "init", "--quiet", folder=forged)
    team.git("add", "-A", folder=forged)
    team.git("commit", "--quiet", "-m", "forged", folder=forged)
    commit = team.git("rev-parse", "HEAD", folder=forged)
    (forged / ".git" / "refs" / "replace").mkdir(parents=True)
    (forged / ".git" / "refs" / "replace" / base).write_text(f"{commit}\n")
    for name in ("HEAD", "objects", "refs", "index"):
        source = forged / ".git" / name
        shutil.copytree(source, inside / name) if source.is_dir() else shutil.copy(source, inside / name)
    worktree = "" if bare else "\tworktree = .\n"
    (inside / "config").write_text(
        RUNS.format(bare="true" if bare else "false", worktree=worktree, program=program, hooks=hooks)
    )
    (inside / ".gitattributes").write_text("* filter=x diff=x\n")
    team.git("add", "-A")
    team.git("commit", "--quiet", "-m", "pull request")
    said = [team.trainyard("review", "local", "--against", ref).stdout for ref in ("main~1", base)[-wanted(1, 2) :]]
    assert team.ran() == []
    assert all(each.startswith("local: new stack, opens 2 ") for each in said), said
