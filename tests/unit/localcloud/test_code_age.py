# SPDX-License-Identifier: Apache-2.0
"""A cloud that runs older code than the command that talks to it is noticed, whatever changed the code."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from localcloud import code_age
from localcloud.code_age import why_cloud_is_older


@pytest.fixture
def code(tmp_path: Path) -> Path:
    code = tmp_path / "code"
    (code / "localcloud" / "hosts").mkdir(parents=True)
    (code / "localcloud" / "hosts" / "first.py").write_text("before = True\n")
    (code / "launcher").mkdir()
    (code / "launcher" / "errors.py").write_text("")
    return code


@pytest.fixture
def home(tmp_path: Path, code: Path) -> Path:
    home = tmp_path / "cloud"
    home.mkdir()
    (home / "server.json").write_text(json.dumps({"pid": 1, "code": str(code)}))
    while _clock(tmp_path) <= (home / "server.json").stat().st_mtime_ns:  # a file's time is that of the last tick
        time.sleep(0.001)
    return home


def _clock(folder: Path) -> int:
    probe = folder / "probe"
    probe.write_text(str(time.time_ns()))
    return probe.stat().st_mtime_ns


def _edited(code: Path) -> None:
    (code / "localcloud" / "hosts" / "first.py").write_text("before = False\n")


def _pulled(code: Path) -> None:
    """Replaces a file as git does, with a modification time in the past, as from an archive."""
    new = code / "localcloud" / "hosts" / "first.py.new"
    new.write_text("before = 0\n")
    os.utime(new, (1, 1))
    new.replace(new.with_suffix(""))


def _added(code: Path) -> None:
    (code / "launcher" / "new.py").write_text("")


@pytest.mark.parametrize("change", [_edited, _pulled, _added])
def test_code_that_changed_since_the_cloud_started_is_named_with_the_remedy(
    home: Path, code: Path, change: Callable[[Path], None]
) -> None:
    assert why_cloud_is_older(home, code) == ""
    change(code)
    why = why_cloud_is_older(home, code)
    assert str(code) in why
    assert f"trainyard cloud stop --home {home}" in why


def test_bytecode_and_editor_files_are_not_changes(home: Path, code: Path) -> None:
    (code / "launcher" / "__pycache__").mkdir()
    (code / "launcher" / "__pycache__" / "errors.cpython-311.pyc").write_text("")
    (code / "launcher" / ".errors.py.swp").write_text("")
    (code / "docs.md").write_text("")
    assert why_cloud_is_older(home, code) == ""


def test_another_checkout_is_named_if_its_code_differs(home: Path, code: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(code, other)
    assert why_cloud_is_older(home, other) == ""
    _edited(other)
    assert f"{code}, and this is {other}" in why_cloud_is_older(home, other)


def test_a_cloud_without_recorded_code_counts_as_older(home: Path, code: Path) -> None:
    (home / "server.json").write_text(json.dumps({"pid": 1}))
    assert "earlier release" in why_cloud_is_older(home, code)


def test_a_missing_cloud_is_not_older(tmp_path: Path) -> None:
    assert why_cloud_is_older(tmp_path / "nothing", code_age.PROJECT) == ""
