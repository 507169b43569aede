# SPDX-License-Identifier: Apache-2.0
"""Runs docs/first-hour.md from top to bottom: six scripts without any code for trainyard, up to results on disk.

`make test` lets it find the environments that the machine has; `up` still makes those of its requirements. Torture runs
the page with an empty cache, so that `up` makes all environments, and changes the file for the other platforms.
"""

import os
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

from localcloud.environments.environment_rows import environment_rows
from localcloud.environments.find import missing_packages
from tests.support.first_hour import (
    NEEDS_ROOT,
    SCRIPTS,
    blocks,
    moving_blocks,
    obey_check,
    promised,
    read_stack,
    write_stack,
)
from tests.support.linking import link_or_copy
from tests.support.pages import a_desk, as_shell, run_typed

pytestmark = pytest.mark.engine

# What `runs outputs` says of a run on the local OpenPAI.
_KEPT_IN = re.compile(r"^(\w+)/first  SUCCEEDED  (/\S+)$", re.MULTILINE)


CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a new user on a machine with caches."""
    with a_desk(tmp_path) as variables:
        yield {**variables, "XDG_CACHE_HOME": str(CACHE)}


@pytest.fixture
def new_desk(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a new user on a machine that has the engine but no local environments."""
    cache = tmp_path / "cache"
    ours = Path("trainyard", "engine")
    shutil.copytree(CACHE / ours, cache / ours, copy_function=link_or_copy, symlinks=True)
    with a_desk(tmp_path) as variables:
        yield {**variables, "XDG_CACHE_HOME": str(cache)}


def test_the_commands_of_the_page_produce_the_promised_results(desk: dict[str, str], tmp_path: Path) -> None:
    type_the_page(desk, tmp_path / "work")


@pytest.mark.torture
def test_with_an_empty_cache_up_makes_all_environments_of_the_page(new_desk: dict[str, str], tmp_path: Path) -> None:
    type_the_page(new_desk, tmp_path / "work")
    made = {folder.name for folder in (tmp_path / "cache" / "trainyard" / "environments").iterdir()}
    assert any(name.startswith("ray-") for name in made)


def test_up_announces_an_environment_before_it_makes_it(new_desk: dict[str, str], tmp_path: Path) -> None:
    """With the environment that takes the least time to make: Dask's, with pandas."""
    work = tmp_path / "work"
    shutil.copytree(SCRIPTS / "dask", work / "dask")
    script = work / "dask" / "client.py"
    script.write_text(
        script.read_text().replace("import dask.array as da\n", "import dask.array as da\nimport dask.dataframe\n")
    )
    write_stack(read_stack(["dask"]), work / "Pulumi.one.yaml")
    shown = run_typed("trainyard preview one --local --stacks . 2>&1", new_desk, work)
    assert "`up` makes first, once per machine: the environments dask-dataframe (400 MB" in shown
    assert not list((tmp_path / "cache" / "trainyard").glob("environments/dask-*")), "preview makes nothing"
    told = run_typed(
        "trainyard up one --local --stacks . 2>&1; trainyard runs watch one --local --stacks .", new_desk, work
    )
    assert re.search(
        r"making the environment `dask-dataframe`: 400 MB and about 1 minute(?s:.*)"
        r"the environment `dask-dataframe` is ready", told,
    )  # fmt: skip
    assert "dask/first rank 0 scheduler-0: SUCCEEDED" in told


@pytest.mark.torture
def test_the_changed_stack_file_works_on_openpai(desk: dict[str, str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    move("openpai", desk, work)
    told = run_typed("trainyard runs outputs openpai --local --stacks first", desk, work)
    folders = {job: Path(path) for job, path in _KEPT_IN.findall(told)}
    for job, file in promised():
        assert (folders[job] / "workdir" / file).stat().st_size, f"{file} of {job}"
    take_down("openpai", desk, work)


@pytest.mark.torture
def test_the_changed_stack_file_works_on_aws(desk: dict[str, str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    # The account's quota is enough for two of the jobs on the machines that `check` proposes.
    move("aws", desk, work, {"ddp", "dask"})
    run_typed("trainyard runs outputs aws --local --stacks first --to results", desk, work)
    assert {path.name for path in (work / "results").iterdir()} == {"ddp", "dask"}
    assert (work / "results/ddp/first/workdir/snapshot.pt").stat().st_size
    take_down("aws", desk, work)


def move(platform: str, desk: dict[str, str], work: Path, jobs: Collection[str] = ()) -> None:
    """As on the page: a copy of the file with another platform, corrected by what `check` says, then `up` and `watch`.

    `jobs`: those that are kept. Empty: all."""
    shutil.copytree(SCRIPTS, work / "first")
    stack = next(block for block in blocks() if block.language == "yaml")
    copying, training = (as_shell(block).replace("openpai", platform) for block in moving_blocks())
    file = Path("first", f"Pulumi.{platform}.yaml")
    run_typed(f"{as_shell(stack)}{copying}! trainyard check {file}", desk, work)
    if jobs:
        data = yaml.safe_load((work / file).read_text())
        every = data["config"]["trainyard:jobs"]
        data["config"]["trainyard:jobs"] = {name: job for name, job in every.items() if name in jobs}
        write_stack(data, work / file)
    while obey_check(work / file):
        pass
    run_typed(training, desk, work)


def take_down(stack: str, desk: dict[str, str], work: Path) -> None:
    run_typed(f"trainyard down {stack} --local --stacks first --delete-data --yes", desk, work)


def type_the_page(desk: dict[str, str], work: Path) -> None:
    shutil.copytree(SCRIPTS, work / "docs" / "first-hour")
    cannot = [NEEDS_ROOT] if os.geteuid() and missing_packages(environment_rows()["horovod-pytorch"]) else []
    try:
        printed = run_typed("\n".join(map(as_shell, blocks(without=cannot))), desk, work)
    except AssertionError:
        print(run_typed("trainyard runs logs first --local --stacks first 2>&1 | tail -150 || true", desk, work))
        raise
    for script in SCRIPTS.rglob("*.*"):
        copy = work / "first" / script.relative_to(SCRIPTS)
        assert copy.read_bytes() == script.read_bytes(), "a script had to be changed"
    assert {job for job, _ in promised()} == {folder.name for folder in SCRIPTS.iterdir()}
    for job, file in promised(without=cannot):
        assert (work / "results" / job / "first" / "workdir" / file).stat().st_size, f"{file} of {job}"
    assert np.loadtxt(work / "results/dask/first/workdir/means.csv", delimiter=",").shape == (8,)
    # Files in /tmp are lost with the node. The output names them, and says how to keep them.
    assert re.search(r"/tmp/keras-model", printed)
