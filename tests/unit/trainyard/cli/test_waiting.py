# SPDX-License-Identifier: Apache-2.0
"""A command that waits for more than two seconds says for what."""

from __future__ import annotations

import sys

import pytest

from tests.support.waiting import eventually
from trainyard.cli import waiting


def test_a_long_wait_is_shown_and_a_short_one_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with waiting.show_waiting("looking"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(waiting, "FIRST_SECONDS", 0.01)
    with waiting.show_waiting("looking"):
        eventually(lambda: capsys.readouterr().err, lambda text: "looking, 0 s" in text)


@pytest.mark.parametrize(("terminal", "redraws"), [("xterm", True), ("dumb", False)])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
    terminal: str, redraws: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", terminal)
    shown = ""
    with waiting.show_waiting("looking"):
        shown = eventually(lambda: capsys.readouterr().err, lambda text: "looking, 0 s" in text)
    assert ("\x1b" in shown) is redraws
