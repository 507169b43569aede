# SPDX-License-Identifier: Apache-2.0
"""`make dist`, and a team that unpacks the release: its stack of an earlier release continues, a new one trains."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.version import VERSION
from tests.support.linking import link_or_copy
from tests.support.local_team import ROOT, Team
from tools.release.news import NotesError, read_notes

RECORDING = Path(__file__).parent / "0.1.0"
DATED = f"# Changelog\n\n## {VERSION}, 2026-05-31\n\n- New.\n\n## 0.0.1, 2025-01-01\n\n- Old.\n"


def _run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    person = {f"GIT_{who}_{what}": "tests@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, env=os.environ | person)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of one commit with the files of this checkout, as they are now."""
    copy = tmp_path_factory.mktemp("repository") / "trainyard"
    listed = _run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", cwd=ROOT).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "all"]):
        done = _run("git", *words, cwd=copy)
        assert done.returncode == 0, done.stderr
    return copy


def _dist(checkout: Path) -> subprocess.CompletedProcess[str]:
    return _run("make", "dist", f"PYTHON={sys.executable}", cwd=checkout)


@pytest.fixture(scope="module")
def archive(checkout: Path) -> Path:
    done = _dist(checkout)
    assert done.returncode == 0, done.stderr
    (archive,) = (checkout / "dist").glob("*.tar.gz")
    return archive


def test_the_files_of_a_release_match_each_other(archive: Path, checkout: Path) -> None:
    notes = archive.with_name(archive.name.replace(".tar.gz", ".md"))
    assert f"## {VERSION}" in notes.read_text()
    checked = _run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=archive.parent)
    assert checked.returncode == 0
    assert checked.stdout.splitlines() == [f"{archive.name}: OK", f"{notes.name}: OK"]
    before = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert _dist(checkout).returncode == 0
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == before


def test_a_release_contains_the_files_that_a_team_needs_and_no_tests(archive: Path) -> None:
    with tarfile.open(archive) as packed:
        names = packed.getnames()
    assert {name.partition("/")[0] for name in names} == {"trainyard"}
    top = {name.split("/")[1] for name in names if "/" in name}
    assert {"CHANGELOG.md", "LICENSE", "Makefile", "Pulumi.yaml", "README.md", "__main__.py", "components"} <= top
    assert not top & {"tests", "bench", "tools", ".ci", ".git"}


def test_uncommitted_changes_stop_a_release(checkout: Path, archive: Path) -> None:
    before = archive.read_bytes()
    (checkout / "draft.py").touch()
    try:
        done = _dist(checkout)
    finally:
        (checkout / "draft.py").unlink()
    assert done.returncode != 0
    assert "'?? draft.py': commit or stash them" in done.stderr
    assert archive.read_bytes() == before


@pytest.mark.parametrize(
    ("changelog", "words"),
    [
        (DATED.replace(VERSION, "9.9.9"), "begins with 9.9.9"),
        (DATED.replace("2026-05-31", "soon"), "needs a date"),
        ("# Changelog\n", "no heading"),
    ],
)
def test_a_changelog_that_does_not_name_the_release_stops_it(changelog: str, words: str) -> None:
    with pytest.raises(NotesError, match=re.escape(words)):
        read_notes(changelog, VERSION)


def test_the_notes_are_those_of_the_release_alone() -> None:
    notes = read_notes(DATED, VERSION)
    assert notes.released
    assert notes.text == f"## {VERSION}, 2026-05-31\n\n- New.\n"


@pytest.fixture(scope="module")
def project(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked release after `make setup`.

    The packages of this checkout are there already, so that set-up downloads nothing twice.
    """
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as packed:
        # Debian 12's Python does not have `filter`; newer versions warn without it.
        packed.extraction_filter = lambda member, _: member
        packed.extractall(folder)
    environment = folder / "trainyard" / ".venv"
    venv.create(environment, with_pip=False)
    packages = Path(pytest.__file__).parents[1]
    inside = packages.relative_to(sys.prefix)
    shutil.copytree(packages, environment / inside, copy_function=link_or_copy, dirs_exist_ok=True)
    made = _run("make", "setup", f"PYTHON={sys.executable}", cwd=folder / "trainyard")
    assert made.returncode == 0, made.stderr
    return folder / "trainyard"


@pytest.fixture
def team(project: Path, tmp_path: Path) -> Iterator[Team]:
    team = Team(tmp_path, project=project, python=str(project / ".venv" / "bin" / "python"))
    try:
        yield team
    finally:
        team.end()


@pytest.mark.engine
@pytest.mark.torture
def test_a_stack_trains_with_the_unpacked_release(team: Team) -> None:
    told = team.trainyard("up", "local")
    assert "SUCCEEDED" in told or "succeeded" in told
    modules = {row["type"] for row in team.resources()}
    assert "trainyard:index:Run" in modules
    assert not (team.project / "tests").exists()
    refused = _run("make", "bench", cwd=team.project)
    assert refused.returncode != 0
    assert "tests and benchmarks are in the repository" in refused.stderr


@pytest.mark.engine
def test_a_stack_of_an_earlier_release_continues_with_the_unpacked_one(team: Team) -> None:
    team.take_over(RECORDING)
    # On a busy machine, stderr shows what the command waits for.
    shown = team.attempt("preview", "local", "--json").stdout
    document = json.loads(shown[shown.index("{") :])
    replaced = {step["urn"] for step in document["steps"] if step["op"] == "replace"}
    assert replaced == set(json.loads((RECORDING / "replaced.json").read_text()))
    assert document["changeSummary"]["same"] > 10
