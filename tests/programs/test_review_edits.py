# SPDX-License-Identifier: Apache-2.0
"""Edits without meaning are nothing to decide, and trip no gate."""

from __future__ import annotations

from pathlib import Path

from tests.support.edits_without_meaning import EDITED_STACKS, FILE_EDITS, what_edits_say


def test_edits_without_meaning_say_nothing(tmp_path: Path) -> None:
    assert sum(len(stack.edits) for stack in EDITED_STACKS) + len(FILE_EDITS) >= 60
    said = list(what_edits_say(tmp_path))
    assert not said, "\n\n".join(said)
