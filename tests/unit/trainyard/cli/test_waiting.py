# SPDX-License-Identifier: Apache-2.0
"""A command that waits for more than two seconds says for what."""

from __future__ import annotations

import pytest

from tests.support.waiting import eventually
from trainyard.cli import waiting


def test_a_long_wait_is_shown_and_a_short_one_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with waiting.waiting("looking"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(waiting, "FIRST_SECONDS", 0.01)
    with waiting.waiting("looking"):
        eventually(lambda: capsys.readouterr().err, lambda text: "looking, 0 s" in text)
