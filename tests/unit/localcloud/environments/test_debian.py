# SPDX-License-Identifier: Apache-2.0
"""An environment that is a small Debian: its own Python, its own libraries, and what the machine may lack for it."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from localcloud.environments import debian, find, make
from localcloud.environments.environment_rows import environment_rows
from localcloud.environments.make import find_obstacle
from localcloud.environments.watched_commands import MakeError
from tests.support.environments import TINY, Told


def test_other_systems_get_one_pip_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "other", "NAME": "Other Linux"})
    monkeypatch.setattr("shutil.which", lambda name, **_: f"/usr/bin/{name}")
    blocked = find_obstacle(environment_rows()["pytorch-libraries"])
    assert blocked
    assert "this machine is Other Linux" in blocked.reason
    assert blocked.remedy.endswith("-I -m pip install torch torchvision numpy")


def test_unmet_requirements_are_removed_from_metadata(tmp_path: Path) -> None:
    for name, version, asks in (
        ("big", "2.6", ("small==1.13.1", "small>=1", "gone", "small==9; extra == 'all'")),
        ("small", "1.13.3", ()),
    ):
        info = tmp_path / f"{name}-{version}.dist-info"
        info.mkdir()
        lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in asks)]
        (info / "METADATA").write_text("\n".join(lines) + "\n\nRequires-Dist: words\n")
    debian._accept_own_versions(tmp_path)
    kept = (tmp_path / "big-2.6.dist-info" / "METADATA").read_text()
    assert kept == (
        "Name: big\nVersion: 2.6\nRequires-Dist: small>=1\nRequires-Dist: small==9; extra == 'all'\n\n"
        "Requires-Dist: words\n"
    )


def test_a_library_of_the_machine_fails_the_proof(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The proof, in an interpreter that has all its libraries from the machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    strange = replace(TINY, proof=debian.ONLY_OWN_LIBRARIES)
    for module in (find, make):
        monkeypatch.setattr(module, "environment_rows", lambda: {"tiny": strange})
    with pytest.raises(MakeError, match="libraries of this machine are used"):
        make.make_environment("tiny", Told())
