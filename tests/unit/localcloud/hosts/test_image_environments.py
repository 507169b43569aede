# SPDX-License-Identifier: Apache-2.0
"""An image stands for a local environment by name; without one, for this checkout's interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from localcloud.environments.find import MissingEnvironment
from localcloud.hosts.images import LocalEnvironment, NodePaths, base_variables, environment_for


@pytest.mark.parametrize("name", ["", "own", "no-such-environment"])
def test_an_image_without_an_environment_runs_in_this_interpreter(name: str) -> None:
    found = environment_for(name)
    assert isinstance(found, LocalEnvironment)
    assert found.path.split(":")[0] == str(Path(sys.executable).parent)
    assert base_variables(found, NodePaths())["PATH"] == found.path


def test_one_that_is_not_made_here_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = environment_for("dask-ml")
    assert isinstance(found, MissingEnvironment)
    assert found.remedy == "trainyard environments make dask-ml"
