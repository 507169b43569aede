# SPDX-License-Identifier: Apache-2.0
"""Where artifacts are kept: the same relative place from every checkout, or where one may write."""

from __future__ import annotations

import os
from pathlib import Path

import pulumi
import pytest

from components.oci.deploy import ARTIFACTS, _artifacts


def test_artifacts_lie_beside_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(ARTIFACTS, raising=False)
    assert _artifacts() == Path(".trainyard/artifacts")
    monkeypatch.setenv(ARTIFACTS, "elsewhere")
    assert _artifacts() == Path("elsewhere")


def test_of_a_checkout_that_nobody_may_write_to_they_lie_in_the_teams_repository(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "release").mkdir()
    (tmp_path / "team").mkdir()
    monkeypatch.chdir(tmp_path / "release")
    monkeypatch.delenv(ARTIFACTS, raising=False)
    # A mode would not keep root from writing.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(pulumi.runtime, "get_root_directory", lambda: str(tmp_path / "team"))
    assert _artifacts() == Path("../team/.trainyard/artifacts")
