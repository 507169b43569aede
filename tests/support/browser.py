# SPDX-License-Identifier: Apache-2.0
"""A real browser without a window, controlled through a pipe. Tests set the width and the colour scheme of a page."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import LONGEST_SECONDS, eventually

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_END = b"\0"


def browser_program() -> str:
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("no Chromium on this machine; tests/apt-packages.txt names the package")
    return program


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own. It ends with the test.

    On a busy machine a browser may end as soon as it starts. Then it is started again; if no start succeeds, the error
    shows the output of the last one.
    """
    words = folder / "browser.log"
    for profile in ("first", "second", "third"):
        with _started(folder / profile, words) as started:
            try:
                started.call("Browser.getVersion")
            except (BrokenPipeError, ConnectionError):
                continue
            yield started
            return
    raise AssertionError(f"no browser starts:\n{words.read_text('utf-8', 'replace')}")


@contextmanager
def _started(profile: Path, words: Path) -> Iterator[Browser]:
    to_browser, from_browser = os.pipe(), os.pipe()
    command = [
        browser_program(), "--headless", *(["--no-sandbox"] if os.geteuid() == 0 else []), "--disable-gpu",
        "--disable-dev-shm-usage", f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank",
    ]  # fmt: skip

    def connect() -> None:  # the browser reads from 3 and writes to 4
        ends = os.dup(to_browser[0]), os.dup(from_browser[1])
        os.dup2(ends[0], 3)
        os.dup2(ends[1], 4)

    with words.open("wb") as log:
        process = subprocess.Popen(command, preexec_fn=connect, pass_fds=(3, 4), stdout=log, stderr=log)
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        yield Browser(to_browser[1], from_browser[0])
    finally:
        process.kill()
        process.wait()
        os.close(to_browser[1])
        os.close(from_browser[0])


@dataclass
class Browser:
    """The two ends of the pipe."""

    writes: int
    reads: int
    _number: int = 0
    _unread: bytes = b""

    def call(self, method: str, session: str = "", **parameters: Any) -> Any:
        """Sends one command of the DevTools protocol, and returns its result. Events are ignored."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        os.write(self.writes, json.dumps({**message, **({"sessionId": session} if session else {})}).encode() + _END)
        ends = time.monotonic() + LONGEST_SECONDS
        while (answer := self._read(ends)).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _read(self, ends: float) -> Any:
        while _END not in self._unread:
            ready, _, _ = select.select([self.reads], [], [], max(0.0, ends - time.monotonic()))
            part = os.read(self.reads, 1 << 20) if ready else b""
            if not part and ready:
                raise ConnectionError("the browser has ended")
            assert part, "the browser does not answer"
            self._unread += part
        message, _, self._unread = self._unread.partition(_END)
        return json.loads(message)

    def open(self, address: str, width: int = 1280, height: int = 1400, dark: bool = False) -> Page:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        page = Page(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        page.resize(width, height, dark)
        page.call("Page.navigate", url=address)
        return page


@dataclass
class Page:
    """One tab."""

    browser: Browser
    session: str
    size: tuple[int, int] = field(default=(0, 0))

    def call(self, method: str, **parameters: Any) -> Any:
        return self.browser.call(method, self.session, **parameters)

    def resize(self, width: int, height: int, dark: bool) -> None:
        self.size = width, height
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def value(self, script: str) -> Any:
        """The value of a script that is run in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, script: str) -> Any:
        return eventually(lambda: self.value(script), bool)

    def picture(self, whole: bool = False) -> bytes:
        """A PNG of the visible part, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])
