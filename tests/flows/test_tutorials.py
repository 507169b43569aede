# SPDX-License-Identifier: Apache-2.0
"""Tutorials of today train unchanged, or `check` says what they lack (tests/tutorials)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.judge import judge_file
from tests.support.counts import drawn
from tests.support.pages import a_desk, run_typed
from tests.support.tutorials import FOLDER, NEEDS_NO_INDEX, TUTORIALS, as_typed

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[dict[str, str]]:
    with a_desk(tmp_path) as variables:
        yield {**variables, "XDG_CACHE_HOME": str(CACHE)}


def test_check_says_what_a_tutorial_lacks() -> None:
    assert {folder.name for folder in FOLDER.iterdir() if folder.is_dir()} == set(TUTORIALS)
    for name, tutorial in TUTORIALS.items():
        found = judge_file(FOLDER / name / f"Pulumi.{name}.yaml").findings
        assert tuple(one.code for one in found) == tutorial.says, name


@pytest.mark.engine
@pytest.mark.parametrize("name", drawn(NEEDS_NO_INDEX, 1))
def test_a_tutorial_trains_unchanged(name: str, desk: dict[str, str], tmp_path: Path) -> None:
    train(name, {**desk, "PIP_NO_INDEX": "1"}, tmp_path / "work")


@pytest.mark.engine
@pytest.mark.torture
@pytest.mark.parametrize("name", [name for name, tutorial in TUTORIALS.items() if tutorial.result])
def test_every_tutorial_trains_that_check_lets_pass(name: str, desk: dict[str, str], tmp_path: Path) -> None:
    printed = train(name, desk, tmp_path / "work")
    if name == "ddp":
        assert "kept only here, lost on a real cloud" in printed
        assert 'give the job `keep: ["snapshot.pt"]`' in printed


@pytest.mark.engine
@pytest.mark.torture
def test_a_tutorial_that_downloads_says_why_it_failed(desk: dict[str, str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(FOLDER / "keras", work / "keras")
    of_stack = "keras --local --stacks keras"
    typed = f"trainyard up {of_stack} 2>&1 || true; ! trainyard runs watch {of_stack}; trainyard runs {of_stack}"
    assert "Bring what it downloads with `trainyard data put`" in run_typed(typed, desk, work)


def train(name: str, desk: dict[str, str], work: Path) -> str:
    shutil.copytree(FOLDER / name, work / name)
    printed = run_typed(as_typed(name, "."), desk, work)
    script = next((FOLDER / name).glob("*.py"))
    assert (work / name / script.name).read_bytes() == script.read_bytes()
    return printed
