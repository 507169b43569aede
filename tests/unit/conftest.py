# SPDX-License-Identifier: Apache-2.0
"""A unit test needs nothing of the machine: no engine, which takes minutes to make on a new one."""

from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

import trainyard.engine.obtain

_ABOUT_ENGINES = Path(__file__).parent / "trainyard" / "engine"


def _refused(variables: Mapping[str, str]) -> NoReturn:
    raise AssertionError("this test asks for a Pulumi engine: its place is tests/flows")


@pytest.fixture(autouse=True)
def no_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.path.is_relative_to(_ABOUT_ENGINES):
        monkeypatch.setattr(trainyard.engine.obtain, "engine_folder", _refused)
