# SPDX-License-Identifier: Apache-2.0
"""Answers `/console`: a page, its scripts and style, and their data. It only reads, and only for this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from localcloud.api.http import FilePart, Reply, Request
from localcloud.api.marker import is_for_this_machine
from localcloud.api.operations import LocalCloud
from localcloud.console.data import snapshot, tag_of
from localcloud.console.details import run_details
from localcloud.console.evidence import EvidenceBook
from localcloud.console.platform import ConsolePlatform, console_platforms
from localcloud.console.runs import MOST_RUNS, TrainingRun

PATH = "/console"
DATA, RUN = f"{PATH}/data", f"{PATH}/run"
_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
_SCRIPTS = ("page.js", "elements.js", "sections.js", "runs.js", "curves.js", "drawing.js", "layout.js")
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
# What the page has already: the tags of sections, as `have=a.b.c`.
_TAG = re.compile(r"[0-9a-f]{18}")


def is_console(request: Request) -> bool:
    return request.path == PATH or request.path.startswith(f"{PATH}/")


class Console:
    """The console of one cloud. It remembers what it parsed, so that looking again costs little."""

    def __init__(self, cloud: LocalCloud) -> None:
        self._cloud = cloud
        self._evidence = EvidenceBook(cloud)

    @cached_property
    def _platforms(self) -> list[ConsolePlatform[Any]]:
        """Made with the first look: most clouds are never looked at."""
        return list(console_platforms(self._cloud))

    async def answer(self, request: Request) -> Reply:
        """A reply that no other site can read or frame. It refuses host names that merely resolve to this machine, and
        every request that arrives at the nodes' listener, whatever its Host header says."""
        if request.of_a_node:
            return _refused(404, "the console is not for nodes")
        if not is_for_this_machine(request, self._cloud.endpoint):
            return _refused(403, "the console answers to 127.0.0.1 and localhost only")
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _refused(403, "the console is not for other sites")
        if request.method not in ("GET", "HEAD"):
            return _refused(405, "the console only reads")
        if request.path in (DATA, RUN):
            return await self._data(request)
        if request.path not in _FILES:
            return _refused(404, "the console has no such page")
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
            return Reply(200, snapshot(self._cloud, [run for _, run in runs], sections, facts, have), _HEADERS)
        key = request.query.get("id", "")
        platform, run = next((pair for pair in runs if pair[1].key == key), (None, None))
        if platform is None or run is None:
            return _refused(404, "there is no such run among the newest ones")
        network = await self._evidence.network(run, platform.places)
        content = await run_details(platform, run, network)
        tag = tag_of(content)
        return Reply(200, {"key": run.key, "tag": tag, **({} if tag in have else content)}, _HEADERS)

    async def _runs(self) -> list[tuple[ConsolePlatform[Any], TrainingRun]]:
        """The newest runs of all platforms, the newest first."""
        runs = [(one, run) for one in self._platforms for run in await one.runs()]
        return sorted(runs, key=lambda pair: -pair[1].created)[:MOST_RUNS]


def _refused(status: int, why: str) -> Reply:
    return Reply(status, {"message": why}, _HEADERS)
