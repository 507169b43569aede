# SPDX-License-Identifier: Apache-2.0
"""The cloud as sections of facts, tables and text. They show only the names of environment variables: some values are
secrets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from catalog.version import VERSION
from localcloud.api import clock
from localcloud.api.operations import LocalCloud
from localcloud.console.calls import last_calls
from localcloud.console.platform import Section
from localcloud.console.runs import TrainingRun

Content = dict[str, Any]


def snapshot(
    cloud: LocalCloud, runs: Iterable[TrainingRun], shown: Sequence[Section], facts: Iterable[Sequence[str]],
    have: Collection[str],
) -> Content:  # fmt: skip
    """Everything that the page shows, but for the details of runs. The length of each part is bounded.

    Sections whose tag the page has come without their content.
    """
    calls = Section("Last calls", [last_calls(cloud.home)], "No calls.")
    first, last = ([one for one in shown if one.last == late] for late in (False, True))
    sections: list[Content] = [
        {"title": "Runs", "empty": "No runs.", "runs": [_run(run) for run in runs]},
        *_together([*first, calls, *last]),
    ]
    return {
        "facts": [*(list(pair) for pair in facts), ["home", str(cloud.home)], ["version", VERSION]],
        "sections": [_tagged(section, have) for section in sections],
    }


def tag_of(content: Any) -> str:
    return hashlib.blake2s(json.dumps(content).encode(), digest_size=9).hexdigest()


def _together(sections: Iterable[Section]) -> Iterator[Content]:
    """One section for each title."""
    by_title: dict[str, list[Section]] = {}
    for section in sections:
        by_title.setdefault(section.title, []).append(section)
    for title, parts in by_title.items():
        empty = next((part.empty for part in parts if part.empty), "")
        items = [item for part in parts for item in part.items]
        yield {"title": title, **({"empty": empty} if empty else {}), "items": items}


def _tagged(section: Content, have: Collection[str]) -> Content:
    tag = tag_of(section)
    return {"title": section["title"], "tag": tag} if tag in have else {**section, "tag": tag}


def _run(run: TrainingRun) -> Content:
    states: dict[str, int] = {}
    for node in run.nodes:
        states[node.run.state] = states.get(node.run.state, 0) + 1
    return {
        "key": run.key,
        "title": run.title,
        "stack": run.stack,
        "attempt": run.attempt,
        "state": run.state,
        "over": run.over,
        "accepted": clock.rfc3339(run.created),
        "nodes": len(run.nodes),
        "states": states,
    }
