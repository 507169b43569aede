# SPDX-License-Identifier: Apache-2.0
"""A build of the engine leaves nothing in the home folder, and uses the caches that its user has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainyard.engine.build import _with_go_folders


@pytest.fixture
def go(tmp_path: Path) -> str:
    """A Go that answers `go env -json` for a home folder without caches."""
    answer = {"GOPATH": str(tmp_path / "home" / "go"), "GOMODCACHE": str(tmp_path / "home" / "go" / "pkg" / "mod")}
    answer |= {"GOCACHE": str(tmp_path / "home" / ".cache" / "go-build"), "GOFLAGS": "-x"}
    program = tmp_path / "go"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
    program.chmod(0o755)
    return str(program)


def test_go_has_a_folder_of_its_own_that_can_be_removed(go: str, tmp_path: Path) -> None:
    env, own = _with_go_folders(go, tmp_path / "engine" / ".part", {})
    assert own == tmp_path / "engine" / "go"
    assert all(Path(env[name]).is_relative_to(own) for name in ("GOPATH", "GOMODCACHE", "GOCACHE"))
    assert env["GOFLAGS"] == "-x -modcacherw", "read-only files could not be removed"


def test_caches_that_exist_or_are_named_are_used(go: str, tmp_path: Path) -> None:
    (tmp_path / "home" / "go" / "pkg" / "mod").mkdir(parents=True)
    env, own = _with_go_folders(go, tmp_path / "engine" / ".part", {})
    assert ("GOMODCACHE" in env, Path(env["GOCACHE"]).is_relative_to(own)) == (False, True)
    named = {"GOMODCACHE": "/mine", "GOCACHE": "/mine-too"}
    assert _with_go_folders(go, tmp_path / "engine" / ".part", named)[0] == named
