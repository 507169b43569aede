# SPDX-License-Identifier: Apache-2.0
"""The status object of a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from launcher.status import StatusReporter
from tests.support.documents import launch


class Posts:
    """A store for status objects in memory."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}

    def post(self, name: str, content: Any) -> None:
        self.objects[name] = content


@pytest.mark.parametrize("written", ["before anybody says that it has started", "later"])
def test_the_only_progress_line_of_a_quick_script_is_reported(tmp_path: Path, written: str) -> None:
    file, posts = tmp_path / "progress.jsonl", Posts()
    file.write_text('{"step": 7}\n')  # of an earlier life
    reporter = StatusReporter(launch(), posts, str(file))  # type: ignore[arg-type]
    reporter.begin()
    if written != "later":
        file.write_text('{"step": 7}\n{"step": 8}\n')
    reporter.started()
    reporter.last()
    if written == "later":
        assert posts.objects["status/0.json"]["progress"] is None
        file.write_text('{"step": 7}\n{"step": 8}\n')
    reporter.last()
    assert posts.objects["status/0.json"]["progress"] == {"step": 8}
