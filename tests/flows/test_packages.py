# SPDX-License-Identifier: Apache-2.0
"""A job's `requirements:` in every command: `check`, `up --local`, plain `pulumi up`, `rehearse`."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.linking import link_or_copy
from tests.support.local_team import Team, summary
from tests.support.wheels import write_wheel

pytestmark = pytest.mark.engine

TRAIN = """\
import os

import tinypack

print("trained with tinypack", tinypack.VERSION, "in", os.environ["TRAINYARD_ENVIRONMENT"])
"""
ENGINE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainyard" / "engine"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    """A team whose script imports a package that pip finds in a folder. It has a cache of its own."""
    wheels, cache = tmp_path / "wheels", tmp_path / "cache"
    wheels.mkdir()
    for version in ("1.0", "2.0"):
        write_wheel(wheels, "tinypack", version, {"tinypack/__init__.py": f"VERSION = {version!r}\n"})
    shutil.copytree(ENGINE, cache / "trainyard" / "engine", copy_function=link_or_copy, symlinks=True)
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(wheels), "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    made = Team(tmp_path)
    (made.stacks / "local" / "train.py").write_text(TRAIN)
    (made.stacks / "req.txt").write_text("tinypack==1.0\n")
    made.change("code: ./local\n", "code: ./local\n      requirements: ./req.txt\n")
    yield made
    made.end()


@pytest.mark.torture
def test_every_command_uses_the_same_environment(team: Team) -> None:
    (team.stacks / "req.txt").write_text("# nothing yet\n")
    checked = team.run("check", str(team.file))
    assert "train.py:3 imports `tinypack`" in checked.stdout
    assert "remedy: add the line `tinypack` to `./req.txt`" in checked.stdout
    (team.stacks / "req.txt").write_text("tinypack==1.0\n")
    assert "nothing to complain about" in team.run("check", str(team.file), "--strict").stdout

    first = team.trainyard("up", "local")
    assert "installing the packages of ./req.txt over the environment `own`" in first
    assert re.search(r"\[\S+\] trained with tinypack 1\.0 in own\n", first)
    listed = team.run("environments").stdout
    assert re.search(r"own\+[0-9a-f]{16} +ready .*\n.*tinypack 1\.0", listed), listed

    (team.stacks / "req.txt").write_text("tinypack==2.0\n")
    second = team.trainyard("up", "local")
    assert summary(second) == {"replaced": 1, "unchanged": 20}, "other packages train again, and the job stays"
    assert "TRAINYARD_LAUNCH.packages" in second
    assert "trained with tinypack 2.0 in own" in second

    # An image that somebody pushed by hand, a new file, and plain Pulumi.
    namespace = team.cloud.namespace
    team.run("cloud", "push", f"iad.ocir.io/{namespace}/demo/training:2.0")
    (team.stacks / "req.txt").write_text("tinypack>=1\n")
    team.change("${registry}:1.0", "${registry}:2.0")
    copied = team.home / "pulumi" / "stacks" / team.file.name
    copied.write_text(copied.read_text().replace("${registry}:1.0", "${registry}:2.0"))
    with pytest.raises(AssertionError, match="trainyard environments make --stack STACK"):
        team.on_stack("up", "--yes", "--skip-preview")
    made = team.run("environments", "make", "--stack", "local", "--stacks", str(team.stacks))
    assert re.search(r"line: own\+[0-9a-f]{16}: .*tinypack 2\.0", made.stdout), made.stdout + made.stderr
    team.on_stack("up", "--yes", "--skip-preview")
    assert "trained with tinypack 2.0 in own" in team.run("runs", "logs", "local", "line/base", "--local").stdout


@pytest.mark.torture
def test_a_rehearsal_has_the_packages_too(team: Team) -> None:
    rehearsed = team.run("rehearse", "local", "--stacks", str(team.stacks), "--isolation", "where-possible")
    assert "installing the packages of ./requirements/line.txt" in rehearsed.stderr, rehearsed.stderr
    assert rehearsed.returncode == 0, rehearsed.stdout + rehearsed.stderr


def test_a_conflict_is_reported_before_anything_is_made(team: Team) -> None:
    (team.stacks / "req.txt").write_text("# ours\nnumpy==0.1\n")
    failed = team.attempt("up", "local")
    assert failed.returncode == 1
    assert "./req.txt:2: `numpy==0.1` does not fit numpy " in failed.stderr
    assert "which the environment `own` has" in failed.stderr
    assert not (team.home / "cloud" / "state.sqlite3").exists(), "not even the cloud was started"
    checked = team.run("check", str(team.file))
    assert "TY846" in checked.stdout
    assert "./req.txt:2: `numpy==0.1` does not fit numpy " in checked.stdout
