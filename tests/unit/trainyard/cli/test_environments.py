# SPDX-License-Identifier: Apache-2.0
"""`trainyard environments`: every row with its state, for people and programs; a wrong name gets the nearest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from localcloud.environments.environment_rows import environment_rows
from trainyard.cli.environments import environments


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_the_list_says_what_is_missing_and_how_to_get_it() -> None:
    told = CliRunner().invoke(environments, [])
    assert told.exit_code == 0
    assert all(name in told.output for name in environment_rows())
    assert "trainyard environments make dask-ml" in told.output
    assert "690 MB, 1 min" in told.output


def test_the_list_for_programs() -> None:
    told = json.loads(CliRunner().invoke(environments, ["list", "--json"]).output)
    assert set(told) == set(environment_rows())
    assert told["own"]["ready"]
    assert not told["dask-ml"]["ready"]
    assert told["dask-ml"]["remedy"] == "trainyard environments make dask-ml"


def test_a_wrong_name_gets_the_nearest() -> None:
    told = CliRunner().invoke(environments, ["make", "pytorhc"])
    assert told.exit_code == 2
    assert "did you mean `pytorch`" in told.output
