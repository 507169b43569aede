# SPDX-License-Identifier: Apache-2.0
"""What is quoted of a failed run's log, and how the files that it loses are counted."""

from __future__ import annotations

from typing import Any, cast

from components.platform.runs import NodeRun
from provider.runs.lost import LastLines, total_words


class _Log:
    def last_lines(self, *_: Any) -> list[str]:
        return ["[0] ValueError: no", "[0.launcher] ", "[0.launcher]   ", "[0]", "", "[0.launcher] ended with code 1"]


def test_empty_lines_are_not_quoted() -> None:
    quoted = LastLines(cast(Any, None), cast(Any, _Log()), 20).quoted(NodeRun("main-0", "id", "FAILED"), "")
    assert quoted == ["Its last lines:", "  [0] ValueError: no", "  [0.launcher] ended with code 1"]


def test_files_that_only_the_local_cloud_keeps_are_counted_apart() -> None:
    record = {"files": 1, "bytes": 149_000_000, "largest": [], "remedy": ""}
    assert total_words([{"localOnly": record}]) == "1 file (149.0 MB) kept only here, lost on a real cloud"
    both = total_words([{"lost": record}, {"lost": record, "localOnly": None}, None])
    assert both == "2 files (298.0 MB) not kept"
