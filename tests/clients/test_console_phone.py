# SPDX-License-Identifier: Apache-2.0
"""The console on a phone, with longer names than any cloud has: the page itself never scrolls sideways."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from localcloud.console.console_page import _FILES
from tests.support.browser import Page, browser

CONSOLE = Path(__file__).parents[2] / "localcloud" / "console"
LONG = "a-name-that-nothing-breaks" * 8
METRICS = [[f"{LONG}{number}", 0.123456] for number in range(4)]
RUN = {
    "key": "r", "title": f"{LONG}/{LONG}", "stack": LONG, "attempt": 12, "state": "NEEDS_ATTENTION", "over": False,
    "accepted": "2026-05-01T12:00:00Z", "nodes": 64, "states": {"IN_PROGRESS": 60, "NEEDS_ATTENTION": 4},
}  # fmt: skip
RANK = {
    "rank": 0, "role": LONG, "node": LONG, "state": "IN_PROGRESS", "over": False, "started": "2026-05-01T12:00:00Z",
    "finished": None, "step": 123456, "total": 9999999, "metrics": METRICS, "note": LONG,
}  # fmt: skip
CONNECTION = {"kind": "used", "from": [LONG], "to": [f"{LONG}x"]}
DETAILS = {
    "key": "r", "tag": "1", "facts": [[LONG, LONG], ["id", LONG]], "ranks": [RANK], "lines": [LONG, "x " * 300],
    "curves": {
        "names": [LONG], "left": [LONG],
        "ranks": [{"rank": 0, "times": [1, 2], "steps": [1, 2], "metrics": {LONG: [1, 2]}}],
    },
    "network": {"rules": {"used": 0, "unused": 0}, "reason": LONG, "note": LONG, "rows": [], "roles": []},
}  # fmt: skip
ITEM = {
    "name": LONG, "state": LONG, "facts": [[LONG, LONG]], "text": [LONG],
    "tables": [{"title": LONG, "columns": [LONG, "b", "c", "d", "e"], "rows": [[LONG] * 5, ["short"] * 5]}],
}  # fmt: skip
SECTIONS: list[dict[str, Any]] = [
    {"title": "Runs", "tag": "1", "empty": "No runs.", "runs": [RUN]},
    {"title": LONG, "tag": "2", "items": [ITEM]},
    {"title": "Last calls", "tag": "3", "empty": LONG, "items": []},
]
OVERVIEW = {"facts": [[LONG, LONG], ["home", "/a" * 200]], "sections": SECTIONS}
# Elements that are wider than the screen although no frame around them scrolls.
BEYOND = """
[...document.querySelectorAll('body *')].filter((one) => !one.closest('.wide, .unseen, pre, svg'))
  .filter((one) => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((one) => `${one.nodeName}.${one.className}`)
"""


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in _FILES:
            name, kind = _FILES[path]
            self._answer((CONSOLE / name).read_bytes(), kind)
        else:
            self._answer(json.dumps(DETAILS if path == "/console/run" else OVERVIEW).encode(), "application/json")

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Does nothing: an error would be visible in the page."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/console"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def page(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as program:
        page = program.open(address, 360, 740)
        page.wait("document.querySelectorAll('.run table').length > 0")
        yield page


@pytest.mark.parametrize("width", [320, 360, 420])
def test_the_page_does_not_scroll_sideways_and_its_tables_do(page: Page, width: int) -> None:
    page.resize(width, 740, dark=False)
    page.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.wait(f"document.documentElement.clientWidth === {width}")
    assert page.value(BEYOND) == []
    assert page.value("document.documentElement.scrollWidth") <= width
    page.value("scrollTo(500, 0)")
    assert page.value("scrollX") == 0
    frames = page.value("[...document.querySelectorAll('.wide')].map((one) => [one.scrollWidth, one.clientWidth])")
    assert any(inner > outer for inner, outer in frames), "a wide table scrolls in its own frame"
    assert all(outer <= width for _, outer in frames)


def test_names_stand_above_their_values_and_folds_are_wide_enough_for_a_thumb(page: Page) -> None:
    page.resize(360, 740, dark=False)
    page.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    places = page.value(
        "[...document.querySelectorAll('dl')].map((one) => ['dt', 'dd'].map((name) =>"
        " one.querySelector(name).getBoundingClientRect().left))"
    )
    assert places
    assert all(name == value for name, value in places)
    heights = page.value("[...document.querySelectorAll('summary')].map((one) => one.getBoundingClientRect().height)")
    assert min(heights) >= 32
