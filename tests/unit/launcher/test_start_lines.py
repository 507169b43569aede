# SPDX-License-Identifier: Apache-2.0
"""On every platform, our program is started, even if a team's folder, PYTHONPATH or packages have modules with the same
names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from launcher.aws_dl1 import fetch
from launcher.aws_dl1.host_nic import BEFORE_NODE_JSON_NAMED_THEM as GAUDI
from launcher.aws_dl1.machine import options
from localcloud.environments.layout import interpreter_layout
from localcloud.hosts import images
from localcloud.oci.job_runs.run_resources import DEFAULT_ENTRYPOINT
from tests.support import dockerfiles
from tests.support.openpai_jobs import carry_out, job_of
from tests.support.shadows import PLANTED, write_shadows

ROOT = Path(__file__).resolve().parents[3]
IMAGES = ROOT / "launcher" / "images"
HELP = "What to start is read from TRAINYARD_LAUNCH"
# A script that says what training sees: its PYTHONPATH, the team's `launcher`, and whether it is isolated.
TRAIN = "import os, sys, theirs\nprint(os.environ['PYTHONPATH'], theirs.WORD, sys.flags.isolated)\n"


@dataclass(frozen=True)
class Team:
    """A folder of code, and a node's Python as an image has it."""

    code: Path
    environment: dict[str, str]

    def run(self, words: Sequence[str], **more: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **more}
        return subprocess.run(words, cwd=self.code, env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def team(tmp_path: Path) -> Team:
    images.write_python(tmp_path / "image", Path(sys.executable), interpreter_layout(Path(sys.executable)), str(ROOT))
    variables = write_shadows(tmp_path / "code", tmp_path / "library")
    path = f"{tmp_path / 'image' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return Team(tmp_path / "code", {"PATH": path, "HOME": str(tmp_path), "PYTHONUSERBASE": str(tmp_path), **variables})


@pytest.mark.parametrize("name", ["base", "horovod"])
def test_images_start_the_launcher(name: str, team: Team) -> None:
    (started,) = dockerfiles.read(IMAGES / name / "Dockerfile", {}).stages[-1].all("ENTRYPOINT")
    assert tuple(json.loads(started)) == DEFAULT_ENTRYPOINT, "the local cloud starts what an image starts"
    done = team.run([*json.loads(started), "--help"])
    assert HELP in done.stdout, done.stdout + done.stderr


def test_a_package_named_launcher_is_behind_ours_and_before_it_in_training(team: Team) -> None:
    """As pip would install it into the environment of an image."""
    (site,) = (team.code.parent / "image").glob("lib/python3.*/site-packages")
    (site / "launcher").mkdir()
    (site / "launcher" / "__init__.py").write_text("WORD = 'of pip'\n")
    assert HELP in team.run([*DEFAULT_ENTRYPOINT, "--help"]).stdout
    training = team.run(["python", "-c", "import launcher; print(launcher.WORD)"], PYTHONPATH="")
    assert PLANTED in training.stdout, "the folder of the code comes first in training"
    (team.code / "launcher.py").unlink()
    assert team.run(["python", "-c", "import launcher; print(launcher.WORD)"], PYTHONPATH="").stdout == "of pip\n"


def test_the_local_clouds_python_finds_the_launcher_as_that_of_an_image() -> None:
    script = (IMAGES / "system.sh").read_text()
    assert images.FINDS.format(launcher="/opt/trainyard") in script


def test_a_container_of_dl1_starts_ours(team: Team, tmp_path: Path) -> None:
    words = options.run_words(
        "n", "image:1", options.isolated_program("launcher.start", "['--help']"), GAUDI, 0, {}, tmp_path, {}, tmp_path
    )
    inside = [word.replace(options.LAUNCHER, str(ROOT)) for word in words[words.index("image:1") + 1 :]]
    done = team.run([sys.executable, *inside])
    assert HELP in done.stdout, done.stdout + done.stderr


def test_a_machine_of_dl1_starts_ours(team: Team) -> None:
    done = team.run(fetch.program_words(str(ROOT), "help"))
    assert (done.returncode, "trainyard-node serve" in done.stderr) == (64, True), done.stdout + done.stderr


def test_a_machine_of_dl1_checks_ours(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(team.code)
    monkeypatch.setenv("PYTHONPATH", team.environment["PYTHONPATH"])
    assert fetch.flaw(str(ROOT)) == ""


def test_a_task_of_openpai_starts_ours_and_training_gets_its_pythonpath(tmp_path: Path, team: Team) -> None:
    (team.code / "train.py").write_text(TRAIN)
    library = tmp_path / "own"
    library.mkdir()
    (library / "theirs.py").write_text("WORD = 'found'\n")
    images.write_python(tmp_path, Path(sys.executable), interpreter_layout(Path(sys.executable)), str(ROOT))
    alone = {"roles": {"main": 1}, "env": {"PYTHONPATH": str(library)}}
    job = job_of(tmp_path, {"code": "./code", "start": "launcher", "command": "train.py", **alone})
    done = carry_out(job, "main", 0, tmp_path)
    assert f"{library} found 0" in done.stdout, done.stdout + done.stderr
    (library / "launcher.py").write_text("print('planted')\n")
    assert "found 0" in carry_out(job, "main", 0, tmp_path).stdout


def test_a_plain_task_of_openpai_runs_no_module_of_the_team_in_place_of_ours(tmp_path: Path, team: Team) -> None:
    """The command uses Python to find the interface with the task's address, and to unpack the code."""
    (team.code / "train.py").write_text(
        "import os\nprint(os.environ['GLOO_SOCKET_IFNAME'], os.environ['PYTHONPATH'])\n"
    )
    own = {"roles": {"main": 1}, "env": {"PYTHONPATH": team.environment["PYTHONPATH"]}}
    for name in ("struct", "usercustomize"):  # Python itself may import these as training starts
        shutil.rmtree(tmp_path / "library" / name)
    job = job_of(tmp_path, {"code": "./code", "start": "plain", "command": "train.py", **own})
    done = carry_out(job, "main", 0, tmp_path)
    assert done.stdout == f"lo {team.environment['PYTHONPATH']}\n", done.stdout + done.stderr
