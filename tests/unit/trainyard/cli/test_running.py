# SPDX-License-Identifier: Apache-2.0
"""Which local cloud a command finds, wherever it is called from."""

from pathlib import Path

import pytest

from trainyard.cli import planning


def test_the_checkouts_cloud_is_found_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere, checkout = tmp_path / "elsewhere", tmp_path / "checkout" / ".trainyard" / "cloud"
    own = elsewhere / ".trainyard" / "cloud"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.delenv("TRAINYARD_HOME", raising=False)
    monkeypatch.setattr(planning, "CHECKOUT", checkout)
    assert planning.known_home(None) == own, "nothing is there"
    checkout.mkdir(parents=True)
    assert planning.known_home(None) == checkout
    assert planning.known_home(tmp_path) == tmp_path, "it was named"
    own.mkdir(parents=True)
    assert planning.known_home(None) == own, "one of its own"
    monkeypatch.setenv("TRAINYARD_HOME", str(tmp_path / "third"))
    assert planning.known_home(None) == tmp_path / "third" / "cloud"
