# SPDX-License-Identifier: Apache-2.0
"""How a running run is shown in a real browser, on a terminal, and after the cloud was stopped."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from localcloud import control
from tests.support.browser import Page, browser
from tests.support.local_team import ROOT, Team
from tests.support.waiting import LONGEST_SECONDS, eventually

pytestmark = pytest.mark.engine

FRAMEWORK = """
name = "pair"
summary = "two nodes that talk"
rank = "main is rank 0"

[roles.main]
minimum = 1
maximum = 1
mode = "MAIN"
why = "it listens"
runs_command = true

[roles.worker]
minimum = 1
mode = "WORKER"
why = "it calls"
runs_command = true

[environment]
RANK = "{rank}"
MAIN = "{address.main}"

[[ports]]
label = "talk"
listens = ["main"]
reached_from = ["worker"]
default = 7000
evidence = "measured"
why = "workers call main <b>here</b>"

[[ports]]
label = "spare"
listens = ["worker"]
reached_from = ["main"]
default = 7100
evidence = "measured"
why = "nobody ever calls"
"""
# Both ranks report until the file exists; the time limit matters only if the test is killed. The worker connects to a
# port that no rule opens.
SCRIPT = r"""
import json, os, pathlib, socket, time
rank = int(os.environ["RANK"])
if rank == 0:
    server = socket.create_server(("", 7000))
    server.accept()[0].close()
else:
    ends = time.monotonic() + 60
    while True:
        try:
            socket.create_connection((os.environ["MAIN"], 7000), timeout=5).close()
            break
        except OSError:
            assert time.monotonic() < ends
            time.sleep(0.05)
    try:
        socket.create_connection((os.environ["MAIN"], 7999), timeout=1.5)
    except OSError:
        print("not 7999", flush=True)
hostile = {"\u202e<img src=x onerror=document.title='owned'>": 1e308, "words": "text", "\x1b[2J": 2}
hostile |= {f"m{n}": n for n in range(1000)}
end, step = time.monotonic() + 900, 0
while not (pathlib.Path.home() / "ends").exists() and time.monotonic() < end:
    step += 1
    line = {"step": step, "total_steps": 4000, "loss": float("nan") if step == 3 else 2.0 / step + rank, **hostile}
    if step % 2:
        line["kind"] = "a word"
    else:
        line["kind"] = 3
    with open(os.environ["TRAINYARD_PROGRESS"], "a") as progress:
        progress.write(json.dumps(line) + "\n")
    time.sleep(0.1)
"""


@dataclass
class LiveRun:
    team: Team

    @property
    def cloud(self) -> control.Cloud:
        return self.team.cloud

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.cloud.endpoint}{path}", timeout=LONGEST_SECONDS) as answer:
            return json.loads(answer.read())

    def overview(self) -> Any:
        (run,) = self.get("/console/data")["sections"][0]["runs"]
        return run

    def details(self) -> Any:
        return self.get(f"/console/run?id={self.overview()['key']}")

    def end(self) -> None:
        for folder in (self.team.home / "cloud" / "runs").glob("*/node-0"):
            (folder / "ends").touch()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRun]:
    team = Team(tmp_path_factory.mktemp("seen"))
    (team.stacks / "local" / "script.toml").write_text(FRAMEWORK)
    (team.stacks / "local" / "train.py").write_text(SCRIPT)
    team.change("frameworks: { script: ./local/script.toml }", "frameworks: { pair: ./local/script.toml }")
    team.change("framework: script", "framework: pair")
    team.change("roles: { main: 1 }", "roles: { main: 1, worker: 1 }")
    team.change("command: train.py --epochs 5", "command: train.py")
    team.change("base: { until: finished }", "base: { until: started }")
    team.change("network: { cidr: 10.20.0.0/16 }", "network: { cidr: 10.20.0.0/16, flowLog: true }")
    try:
        team.trainyard("up", "local")
        live = LiveRun(team)
        eventually(live.details, lambda seen: points_of(seen) >= [3, 3] and seen["network"].get("dropped", 0) > 0)
        yield live
    finally:
        team.end()


def points_of(details: Any) -> list[int]:
    return sorted(len(rank["times"]) for rank in details["curves"]["ranks"])


def test_reported_progress_is_a_bounded_list_of_numbers(live: LiveRun) -> None:
    details = live.details()
    curves = details["curves"]
    assert curves["names"][0] == "loss"
    assert len(curves["names"] + curves["left"]) <= 8, "of a thousand metrics"
    for rank in curves["ranks"]:
        assert rank["times"] == sorted(rank["times"])
        assert rank["steps"] == sorted(rank["steps"])
        assert all(value is None or abs(value) < 10 for value in rank["metrics"]["loss"])
    assert {(rank["node"], rank["total"]) for rank in details["ranks"]} == {("main-0", 4000), ("worker-0", 4000)}
    assert len(json.dumps(details)) < 60_000


def test_the_network_drawing_shows_used_unused_and_dropped_connections(live: LiveRun) -> None:
    network = live.details()["network"]
    assert [(role["name"], len(role["nodes"])) for role in network["roles"]] == [("main", 1), ("worker", 1)]
    rows = {
        (row["kind"], *row["from"], *row["to"], row["what"]): row for row in network["rows"] if len(row["from"]) == 1
    }
    used = rows["used", "worker", "main", "tcp 7000"]
    assert used["count"] >= 1
    assert used["why"] == "workers call main <b>here</b>"
    dropped = next(row for row in network["rows"] if row["kind"] == "dropped")
    assert (dropped["from"], dropped["to"], dropped["what"]) == (["worker"], ["main"], "tcp 7999")
    assert dropped["count"] >= 1
    unused = [row["why"] for row in network["rows"] if row["kind"] == "allowed"]
    assert unused == ["nobody ever calls"]


SHOWN = "document.querySelectorAll('svg.drawing').length === 1 && document.querySelectorAll('svg.plot').length > 1"
WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_the_run_is_drawn_at_any_browser_width(live: LiveRun, tmp_path: Path, width: int, dark: bool) -> None:
    with browser(tmp_path) as program:
        page = program.open(f"{live.cloud.endpoint}/console", width, 900, dark)
        page.wait(SHOWN)
        page.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.wait("[...document.querySelectorAll('details')].every((one) => one.open)")
        scroll, client = page.value(WIDTHS)
        assert scroll <= client
        ground = page.value("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(14, 18, 23)" if dark else "rgb(255, 255, 255)")
        labels = page.value(
            "[...document.querySelectorAll('svg[role=img]')].map((one) => one.getAttribute('aria-label'))"
        )
        assert any(re.match(r"loss over time: rank 0 from .* rank 1 from ", label) for label in labels)
        assert any(label.startswith("Network of main (1 node), worker (1 node): ") for label in labels)
        assert page.value("document.querySelectorAll('.edge.dropped rect').length") == 1
        assert "workers call main <b>here</b>" in page.value("document.querySelector('svg.drawing').textContent")
        assert page.value("document.querySelectorAll('img, main script').length") == 0
        assert page.value("document.title") == "trainyard: the local cloud"
        text = page.value("document.body.textContent")
        assert "\u202e" not in text
        assert "\x1b" not in text
        assert page.picture()[:4] == b"\x89PNG"


# Counts active timers, so that a test can see that there are none.
TIMERS = """
(() => {
  const set = window.setTimeout.bind(window), clear = window.clearTimeout.bind(window);
  window.waiting = new Set();
  window.setTimeout = (work, pause) => {
    const timer = set(() => { window.waiting.delete(timer); work(); }, pause);
    window.waiting.add(timer);
    return timer;
  };
  window.clearTimeout = (timer) => { window.waiting.delete(timer); clear(timer); };
})();
"""
HIDE = """
Object.defineProperty(document, 'hidden', { configurable: true, get: () => HIDDEN });
document.dispatchEvent(new Event('visibilitychange'));
"""


def _readings(page: Page) -> int:
    return int(
        page.value("performance.getEntriesByType('resource').filter(({ name }) => name.includes('/data')).length")
    )


def test_the_page_keeps_its_view_state_and_stops_polling_while_hidden(live: LiveRun, tmp_path: Path) -> None:
    with browser(tmp_path) as program:
        page = program.open("about:blank")
        page.call("Page.enable")
        page.call("Page.addScriptToEvaluateOnNewDocument", source=TIMERS)
        page.call("Page.navigate", url=f"{live.cloud.endpoint}/console")
        page.wait(SHOWN)
        page.value("document.querySelector('#networks details').open = true; scrollTo(0, 150)")
        page.value("getSelection().selectAllChildren(document.querySelector('.run summary .name'))")
        page.value("document.querySelector('.run summary').focus(); document.querySelector('.run').marked = 'the same'")
        before = page.value("document.querySelector('svg.plot path.line').getAttribute('d')")
        page.wait(f"document.querySelector('svg.plot path.line').getAttribute('d') !== {json.dumps(before)}")
        assert page.value("document.querySelector('.run').marked") == "the same"
        assert page.value("document.querySelector('#networks details').open")
        assert page.value("String(getSelection())") == "line/base"
        assert page.value("scrollY") == 150
        assert page.value("document.activeElement === document.querySelector('.run summary')")
        page.value("document.querySelector('.run').open = false")
        read = _readings(page)
        eventually(lambda: _readings(page), lambda count: count > read + 1)
        assert not page.value("document.querySelector('.run').open"), "what was closed stays closed"
        page.value(HIDE.replace("HIDDEN", "true"))
        page.wait("window.waiting.size === 0")
        read = _readings(page)
        page.value(HIDE.replace("HIDDEN", "false"))
        eventually(lambda: _readings(page), lambda count: count > read)


def _watch(live: LiveRun, columns: int, wanted: str, **environment: str) -> str:
    """The screens that `runs watch` draws on a terminal of this width, until one has the wanted text."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    words = ["runs", "watch", "local", "--home", str(live.team.home / "cloud"), "--every", "0.3"]
    process = subprocess.Popen(
        [sys.executable, "-m", "trainyard", *words, "--stacks", str(live.team.stacks)],
        cwd=ROOT, stdout=its, stderr=its,
        env={**kept, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **environment},
    )  # fmt: skip
    os.close(its)
    drawn = b""
    try:
        while not re.search(wanted, drawn.decode(errors="replace")):
            drawn += os.read(ours, 65536)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return drawn.decode(errors="replace")


def test_the_flow_log_of_the_stack_names_what_was_dropped_to_its_users(live: LiveRun) -> None:
    """As with OCI itself: the command only has Oracle's SDK, the stack file and a user's credentials."""
    words = ["runs", "list", "local", "--stacks", str(live.team.stacks), "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "trainyard", *words], cwd=ROOT, env={**os.environ, **live.cloud.env_for("user")},
        capture_output=True, text=True, timeout=LONGEST_SECONDS,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    ((dropped,),) = (run["dropped"] for run in json.loads(done.stdout))
    assert dropped["pair"] == "worker-0 -> main-0 tcp 7999"
    assert dropped["packets"] >= 1


def test_a_terminal_shows_curves_and_connections(live: LiveRun) -> None:
    shown = _watch(live, 120, r"(?s)[▁▂▃▄▅▆▇█]{3}.*7999, \d+ packet")
    assert re.search(r"0 +main-0 .*[▁▂▃▄▅▆▇█]{3,16} .*loss \d", re.sub(r"\x1b\[[0-9;]*m", "", shown))
    assert re.search(r"\d+/4000", shown)
    assert re.search(r"\d+ connections?, \d+ rules? used, \d+ not; .*dropped", shown)
    assert "\x1b[1m" in shown, "states are coloured"
    assert "\x1b[2J" not in shown, "the name of a metric"


def test_a_narrow_terminal_shows_fewer_columns(live: LiveRun) -> None:
    shown = _watch(live, 44, r"(?s)dropped.*dropped: ", NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*m", shown)
    screen = re.split(r"\x1b\[J", shown)[1]
    assert max(len(line.rstrip("\r")) for line in screen.split("\n")) < 44
    assert re.search(r"running +(\d+/4000 +)?[▁▂▃▄▅▆▇█]{3}", screen)


def test_terminals_without_utf_8_get_ascii(live: LiveRun) -> None:
    latin = _watch(live, 120, r"(?s)7999, \d+ packet", PYTHONIOENCODING="latin-1")
    assert re.search(r"4000 +[_.:=+*#-]{3,16} +loss", latin)
    dumb = _watch(live, 120, r"rank 1 worker-0: running.*\n", TERM="dumb")
    assert "\x1b" not in dumb
    assert re.search(r"rank 1 worker-0: running: step \d+, .*  [_.:=+*#-]{3,16}\r?\n", dumb)


def test_the_final_state_is_shown_after_the_cloud_was_stopped(live: LiveRun) -> None:
    """It ends the run, so it comes last."""
    live.end()
    eventually(live.overview, lambda run: run["over"])
    last = live.details()
    control.stop_cloud(live.team.home / "cloud")
    again = live.details()
    assert again["curves"] == last["curves"]
    assert points_of(again)[0] >= 3
    assert again["network"]["dropped"] == last["network"]["dropped"] > 0
    assert live.overview()["state"] == "SUCCEEDED"
