# SPDX-License-Identifier: Apache-2.0
"""Serves `/console`: a page, its scripts and style, and their data. It is read-only, and only for this machine."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from catalog.version import VERSION
from localcloud.console.platform import MOST_RUNS, ConsolePlatform, Section, TrainingRun, console_platforms
from localcloud.console.run_details import NetworkCache, collect_run_details
from localcloud.server import http
from localcloud.server.api_errors import ApiError
from localcloud.server.cloud import ServedCloud, is_for_this_machine
from localcloud.server.http import Body, FilePart, Reply, Request, plain_refusal, require_single_headers

SHOWN = 60
_TAIL_BYTES = 64 * 1024
_LINE = re.compile(r"^\S+ (?P<time>\S+) (?P<level>[A-Z]+) (?P<text>.*)$")
_CALL = re.compile(r"^(?P<method>[A-Z]+) (?P<target>/\S*) (?P<status>\d{3}) (?P<took>\S+ms) (?P<summary>.*)$")
_OURS = ("/.trainyard", "/console")
Content = dict[str, Any]
PATH = "/console"
DATA, RUN = f"{PATH}/data", f"{PATH}/run"
_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
_SCRIPTS = ("page.js", "elements.js", "sections.js", "runs.js", "curves.js", "drawing.js", "layout.js")


def read_last_calls(home: Path) -> dict[str, Any]:
    """The last calls, newest first. The reason of a refusal is the line before it in the log."""
    rows: list[list[str]] = []
    reason, lines = "", list[str]()
    with suppress(FileNotFoundError), (home / "server.log").open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    for line in lines:
        match = _LINE.match(line)
        if not match:
            continue
        call = _CALL.match(match["text"])
        if call is None:
            reason = match["text"] if match["level"] == "WARNING" else reason
        elif not call["target"].startswith(_OURS):
            path = call["target"].partition("?")[0]
            rows.append([match["time"], call["status"], call["method"], path, call["summary"], reason, call["took"]])
            reason = ""
    columns = ["time", "status", "method", "path", "operation", "refused because", "took"]
    return {"name": "newest first", "tables": [{"columns": columns, "rows": rows[: -SHOWN - 1 : -1]}]}


def take_snapshot(
    cloud: ServedCloud, runs: Iterable[TrainingRun], shown: Sequence[Section], facts: Iterable[Sequence[str]],
    have: Collection[str],
) -> Content:  # fmt: skip
    """Everything that the page shows, except the details of runs. The length of each part is limited.

    A section that the page has already, by its tag in `have`, is sent without its content.
    """
    calls = Section("Last calls", [read_last_calls(cloud.home)], "No calls.")
    first, last = ([one for one in shown if one.last == late] for late in (False, True))
    summaries = [
        {
            "key": run.key,
            "title": run.title,
            "stack": run.stack,
            "attempt": run.attempt,
            "state": run.state,
            "over": run.over,
            "accepted": http.format_rfc3339(run.created),
            "nodes": len(run.nodes),
            "states": dict(Counter(node.run.state for node in run.nodes)),
        }
        for run in runs
    ]
    sections: list[Content] = [
        {"title": "Runs", "empty": "No runs.", "runs": summaries},
        *_merged_by_title([*first, calls, *last]),
    ]
    tagged = [{**section, "tag": content_tag(section)} for section in sections]
    return {
        "facts": [*(list(pair) for pair in facts), ["home", str(cloud.home)], ["version", VERSION]],
        "sections": [
            {"title": section["title"], "tag": section["tag"]} if section["tag"] in have else section
            for section in tagged
        ],
    }


def content_tag(content: Any) -> str:
    return hashlib.blake2s(json.dumps(content).encode(), digest_size=9).hexdigest()


def _merged_by_title(sections: Iterable[Section]) -> Iterator[Content]:
    """One section for each title."""
    by_title: dict[str, list[Section]] = {}
    for section in sections:
        by_title.setdefault(section.title, []).append(section)
    for title, parts in by_title.items():
        empty = next((part.empty for part in parts if part.empty), "")
        items = [item for part in parts for item in part.items]
        yield {"title": title, **({"empty": empty} if empty else {}), "items": items}


_FILES: Mapping[str, tuple[str, str]] = {
    PATH: ("page.html", "text/html; charset=utf-8"),
    **{f"{PATH}/{name}": (name, _SCRIPT) for name in _SCRIPTS},
    f"{PATH}/page.css": ("page.css", _STYLE),
    f"{PATH}/colours.css": ("colours.css", _STYLE),
}
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
}
# The tags of the sections that the page has already, as `have=a.b.c`.
_TAG = re.compile(r"[0-9a-f]{18}")


class Console:
    """The console of one cloud, as an API. It caches what it parsed, so that refreshing the page costs little."""

    def __init__(self, cloud: ServedCloud) -> None:
        self._cloud = cloud
        self._networks = NetworkCache(cloud)

    @cached_property
    def _platforms(self) -> list[ConsolePlatform[Any]]:
        """The platforms. They are made for the first request, because most consoles are never opened."""
        return list(console_platforms(self._cloud))

    def takes(self, request: Request) -> bool:
        return request.path == PATH or request.path.startswith(f"{PATH}/")

    async def answer(self, request: Request, body: Body) -> tuple[Reply, str]:
        require_single_headers(request)
        return await self._answer(request), "console"

    def refused(self, request: Request, error: ApiError) -> Reply:
        return plain_refusal(error)

    def operation(self, request: Request) -> str:
        return ""

    async def _answer(self, request: Request) -> Reply:
        """A reply that no other site can read or frame.

        Refuses host names that merely resolve to this machine, and every request from the nodes' listener, whatever its
        Host header says.
        """
        if request.of_a_node:
            return _refuse_page(404, "the console is not for nodes")
        if not is_for_this_machine(request, self._cloud.endpoint):
            return _refuse_page(403, "the console answers to 127.0.0.1 and localhost only")
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _refuse_page(403, "the console is not for other sites")
        if request.method not in ("GET", "HEAD"):
            return _refuse_page(405, "the console only reads")
        if request.path in (DATA, RUN):
            return await self._data(request)
        if request.path not in _FILES:
            return _refuse_page(404, "the console has no such page")
        name, content_type = _FILES[request.path]
        file = Path(__file__).with_name(name)
        part = FilePart(file, 0, file.stat().st_size)
        return Reply(200, headers={**_HEADERS, "content-type": content_type}, file=part)

    async def _data(self, request: Request) -> Reply:
        have = frozenset(_TAG.findall(request.query.get("have", "")))
        runs = await self._runs()
        if request.path == DATA:
            sections = [section for one in self._platforms for section in await one.sections()]
            facts = [fact for one in self._platforms for fact in one.facts()]
            return Reply(200, take_snapshot(self._cloud, [run for _, run in runs], sections, facts, have), _HEADERS)
        key = request.query.get("id", "")
        platform, run = next((pair for pair in runs if pair[1].key == key), (None, None))
        if platform is None or run is None:
            return _refuse_page(404, "there is no such run among the newest ones")
        network = await self._networks.network(run, platform.places)
        content = await collect_run_details(platform, run, network)
        tag = content_tag(content)
        return Reply(200, {"key": run.key, "tag": tag, **({} if tag in have else content)}, _HEADERS)

    async def _runs(self) -> list[tuple[ConsolePlatform[Any], TrainingRun]]:
        """The newest runs of all platforms, the newest first."""
        runs = [(one, run) for one in self._platforms for run in await one.runs()]
        return sorted(runs, key=lambda pair: -pair[1].created)[:MOST_RUNS]


def _refuse_page(status: int, why: str) -> Reply:
    return Reply(status, {"message": why}, _HEADERS)
