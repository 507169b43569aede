# SPDX-License-Identifier: Apache-2.0
"""Answers `/console`: a page, its script and style, and their data. It only reads, and only for this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from localcloud.api.http import FilePart, Reply, Request
from localcloud.api.operations import LocalCloud
from localcloud.console.data import snapshot

PATH = "/console"
DATA = f"{PATH}/data"
_FILES: Mapping[str, tuple[str, str]] = {
    PATH: ("page.html", "text/html; charset=utf-8"),
    f"{PATH}/page.js": ("page.js", "text/javascript; charset=utf-8"),
    f"{PATH}/page.css": ("page.css", "text/css; charset=utf-8"),
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


def is_console(request: Request) -> bool:
    return request.path == PATH or request.path.startswith(f"{PATH}/")


def answer(cloud: LocalCloud, request: Request) -> Reply:
    """A reply that no other site can read or frame. It refuses host names that merely resolve to this machine, and
    every request that arrives at the nodes' listener, whatever its Host header says."""
    port = cloud.endpoint.rpartition(":")[2]
    if request.of_a_node:
        return _refused(404, "the console is not for nodes")
    if request.headers.get("host") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
        return _refused(403, "the console answers to 127.0.0.1 and localhost only")
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return _refused(403, "the console is not for other sites")
    if request.method not in ("GET", "HEAD"):
        return _refused(405, "the console only reads")
    if request.path == DATA:
        return Reply(200, snapshot(cloud), _HEADERS)
    if request.path not in _FILES:
        return _refused(404, "the console has no such page")
    name, content_type = _FILES[request.path]
    file = Path(__file__).with_name(name)
    part = FilePart(file, 0, file.stat().st_size)
    return Reply(200, headers={**_HEADERS, "content-type": content_type}, file=part)


def _refused(status: int, why: str) -> Reply:
    return Reply(status, {"message": why}, _HEADERS)
