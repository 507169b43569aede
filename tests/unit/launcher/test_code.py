# SPDX-License-Identifier: Apache-2.0
"""The address of the code is not trusted, and must not become an option of git."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.code import clone_code
from launcher.errors import LaunchError
from launcher.oci.identity import NodeIdentity
from launcher.platforms import GitRepository
from launcher.printing import LinePrinter
from tests.support.documents import launch

_URL = "https://git.invalid/team/code.git"


@pytest.fixture
def called(tmp_path: Path) -> tuple[Path, Mapping[str, str]]:
    """A replacement for git that only records its calls."""
    note = tmp_path / "called"
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >>{note}\n')
    program.chmod(0o755)
    return note, {**os.environ, "PATH": str(program.parent)}


@pytest.mark.parametrize(
    "git",
    [
        GitRepository(_URL, "", "--orphan=x", ""),
        GitRepository(_URL, "--upload-pack=true", "", ""),
        GitRepository("--upload-pack=true", "", "", ""),
        GitRepository(_URL, "main", "-fqx", ""),
    ],
    ids=["commit", "branch", "address", "short"],
)
def test_no_untrusted_text_becomes_an_option_of_git(
    git: GitRepository, called: tuple[Path, Mapping[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, environment = called
    monkeypatch.setenv("PATH", environment["PATH"])
    with pytest.raises(LaunchError, match="take for an option"):
        clone_code(replace(launch(0), git=git), environment, tmp_path, LinePrinter())
    assert not note.exists()
    clone_code(replace(launch(0), git=GitRepository(_URL, "main", "9f2c1e7", "")), environment, tmp_path, LinePrinter())
    assert len(note.read_text().splitlines()) == 2


def test_variables_of_oci_are_untrusted_too(called: tuple[Path, Mapping[str, str]], tmp_path: Path) -> None:
    told = {"OCI__RUNTIME_URI": _URL, "OCI__RUNTIME_GIT_COMMIT": "--orphan=x"}
    git = NodeIdentity({"peers": {"from": "bucket"}}, told).git()
    with pytest.raises(LaunchError, match="--orphan=x"):
        clone_code(replace(launch(0), git=git), called[1], tmp_path, LinePrinter())
