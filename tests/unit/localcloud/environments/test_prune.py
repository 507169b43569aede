# SPDX-License-Identifier: Apache-2.0
"""`trainyard environments prune` removes what nothing uses, and nothing that a running cloud may use."""

from __future__ import annotations

import fcntl
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from localcloud import control
from localcloud.environments import cache, find, make, prune
from tests.support.environments import TINY, Told
from trainyard.cli.environments import environments

OWN = replace(TINY, imports=("json",))


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache with an environment, one of an earlier release, an incomplete one, and what is no environment."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for module in (find, make, prune):
        monkeypatch.setattr(module, "environment_rows", lambda: {"tiny": OWN})
    monkeypatch.setattr(control, "running_homes", lambda: iter(()))
    make.make_environment("tiny", Told())
    for name in ("tiny-0123456789ab", "gone-0123456789ab", "tiny+0123456789abcdef-01234567"):
        (cache.environments_cache() / name).mkdir()
        (cache.environments_cache() / name / "large").write_bytes(b"x" * 3_000_000)
    (cache.environments_cache() / "gone-0123456789ab" / cache.STAMP).write_text("{}")
    return cache.environments_cache()


def _left(folder: Path) -> set[str]:
    return {one.name.partition("-")[0] for one in folder.iterdir() if one.is_dir()}


def test_what_nothing_uses_is_removed_after_asking(folder: Path) -> None:
    # A machine with a compiler has the library `pin` beside them, which every environment uses.
    before = _left(folder)
    asked = CliRunner().invoke(environments, ["prune"])
    assert (asked.exit_code, _left(folder)) == (2, before), "there is no terminal to ask at"
    done = CliRunner().invoke(environments, ["prune", "--yes"])
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "Removed, 9 MB."), done.output
    assert _left(folder) == before & {"tiny", "pin"}
    assert "Nothing to remove. With --all" in CliRunner().invoke(environments, ["prune"]).output
    assert CliRunner().invoke(environments, ["prune", "--all", "--yes"]).exit_code == 0
    assert _left(folder) == before & {"pin"}


def test_nothing_is_removed_while_a_cloud_runs(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = _left(folder)
    monkeypatch.setattr(control, "running_homes", lambda: iter([tmp_path / "cloud"]))
    done = CliRunner().invoke(environments, ["prune", "--yes"])
    assert (done.exit_code, f"trainyard cloud stop --home {tmp_path / 'cloud'}" in done.output) == (1, True)
    assert _left(folder) == before


def test_what_another_command_is_making_is_kept(folder: Path) -> None:
    with (folder / ".gone-0123456789ab.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "Kept: another command is making" in CliRunner().invoke(environments, ["prune", "--yes"]).output
    assert "gone" in _left(folder)
