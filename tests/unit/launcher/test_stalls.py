# SPDX-License-Identifier: Apache-2.0
"""When a node counts as idle, and a gang as stalled: thresholds, readings, signs, and who is watched at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from launcher import activity, board, exits
from launcher.activity import Meter, Reading, active_resources, network_bytes
from launcher.board import Board, here_name, idle_name, parse_board_events
from launcher.devices import Gpus
from launcher.printing import LinePrinter
from launcher.retries import Retries
from launcher.stalls import Idleness, Stalls
from launcher.stores import Stored
from tests.support.documents import launch

BEFORE = Reading(output=100, progress=(10, 1), ticks={(7, "a"): 500}, network=1_000_000, disk={}, gpu=0)
QUIET = activity.noise_of("pytorch", 1)
HZ = os.sysconf("SC_CLK_TCK")


def reading(**changes: Any) -> Reading:
    return Reading(**{**vars(BEFORE), **changes})


@pytest.mark.parametrize(
    ("change", "signs"),
    [
        ({}, ()),
        ({"output": 101}, ("output",)),
        ({"progress": (10, 2)}, ("progress",)),
        # Over ten seconds a twentieth of a core is half a second.
        ({"ticks": {(7, "a"): 500 + HZ // 2 - 1}}, ()),
        ({"ticks": {(7, "a"): 500 + HZ // 2}}, ("processor",)),
        ({"ticks": {(7, "a"): 500, (8, "b"): HZ // 2}}, ("processor",)),
        # The number of a process that has ended is used again.
        ({"ticks": {(7, "b"): HZ // 2}}, ("processor",)),
        ({"ticks": {}}, ()),
        ({"network": 1_000_000 + 10 * QUIET.network - 1}, ()),
        ({"network": 1_000_000 + 10 * QUIET.network}, ("network",)),
        ({"disk": {(7, "a"): 10 * activity.DISK_BYTES_PER_SECOND - 1}}, ()),
        ({"disk": {(7, "a"): 10 * activity.DISK_BYTES_PER_SECOND}}, ("disk",)),
        ({"gpu": activity.GPU_PERCENT - 1}, ()),
        ({"gpu": None}, ()),
        ({"gpu": activity.GPU_PERCENT, "output": 101}, ("output", "GPU")),
    ],
)
def test_what_counts_as_activity(change: dict[str, Any], signs: tuple[str, ...]) -> None:
    assert active_resources(BEFORE, reading(**change), 10.0, QUIET) == signs


def test_the_noise_of_horovod_is_its_own_and_grows_with_its_processes() -> None:
    noise = activity.noise_of("horovod", 2)
    polls = reading(ticks={(7, "a"): 500 + 9 * HZ}, network=1_000_000 + 10 * 700_000)
    assert active_resources(BEFORE, polls, 10.0, noise) == ()
    assert active_resources(BEFORE, polls, 10.0, QUIET) == ("processor", "network")
    works = reading(ticks={(7, "a"): 500 + 16 * HZ})
    assert active_resources(BEFORE, works, 10.0, noise) == ("processor",)


def test_idleness_adds_up_and_any_activity_ends_it() -> None:
    idle = Idleness(QUIET)
    assert idle.add(BEFORE, 60, 60) == ()
    assert idle.seconds == 0, "one reading says nothing"
    for _ in range(29):
        idle.add(BEFORE, 60, 60)
    assert idle.seconds == 29 * 60
    assert idle.add(reading(output=101), 60, 60) == ("output",)
    assert idle.seconds == 0


def test_a_paused_node_does_not_count_as_idle_for_the_whole_pause() -> None:
    idle = Idleness(QUIET, last=BEFORE)
    idle.add(BEFORE, 3600, 60)
    assert idle.seconds == 120


def test_the_processor_time_of_all_descendants_counts(tmp_path: Path) -> None:
    spins = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: sum(range(10000))"
    below = (
        f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {spins!r}]); print(flush=True); input()"
    )
    child = subprocess.Popen([sys.executable, "-c", below], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        found = Meter(lambda: 0, "/nowhere").read()
        assert sum(ticks for (pid, _), ticks in found.ticks.items() if pid == child.pid) >= 0.2 * HZ
        assert child.pid in {pid for pid, _ in found.disk}
        assert os.getpid() not in {pid for pid, _ in found.ticks}
    finally:
        child.communicate(b"\n")


def test_disk_reads_and_writes_count(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/io").write_text("rchar: 900000\nwchar: 900000\nread_bytes: 4096\nwrite_bytes: 8192\n")
    assert activity.disk_bytes(tmp_path, 7) == 12288, "pipes and sockets are no disks"
    assert activity.disk_bytes(tmp_path, 8) == 0


def test_loopback_traffic_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "self/net").mkdir(parents=True)
    row = "{}: {} 1 0 0 0 0 0 0 {} 1 0 0 0 0 0 0\n"
    rows = ["Inter-| Receive\n", " face |bytes\n", row.format("lo", 5000, 5000), row.format("  ens3", 300, 40)]
    (tmp_path / "self/net/dev").write_text("".join(rows))
    assert network_bytes(tmp_path) == 340
    assert network_bytes(tmp_path / "none") == 0


def test_amd_gpus_are_asked_through_sysfs(tmp_path: Path) -> None:
    for card, text in (("card0", "3\n"), ("card1", "71\n"), ("card2", "?")):
        folder = tmp_path / "class/drm" / card / "device"
        folder.mkdir(parents=True)
        (folder / "gpu_busy_percent").write_text(text)
    assert Gpus(tmp_path).busiest() == 71
    assert Gpus(tmp_path / "none").busiest() is None
    assert not Gpus(tmp_path / "none").readable


def stored(name: str) -> Stored:
    return Stored(name, "2026-05-01T12:00:00Z", 2, "")


def seen(*names: str) -> Board:
    return Board(tuple(parse_board_events(map(stored, names))), board.rfc3339_seconds("2026-05-01T12:00:00Z"))


def test_the_last_report_of_the_current_launcher_of_a_rank_counts() -> None:
    arrived = [here_name(1, rank, nonce, f"10.0.0.{rank}") for rank, nonce in ((0, "aa"), (1, "bb"), (2, "cc"))]
    signs = [
        idle_name(1, 0, "aa", 1),
        # Withdrawn, and reported again.
        idle_name(1, 1, "bb", 9), idle_name(1, 1, "bb", 10), idle_name(1, 1, "bb", 11),
        # Withdrawn; of an earlier generation; of a launcher that has gone.
        idle_name(1, 2, "cc", 1), idle_name(1, 2, "cc", 2), idle_name(0, 2, "cc", 3),
        idle_name(1, 2, "old", 5),
        # Names that no launcher wrote.
        "peers/g1/0002/cc/idle/x", "peers/g1/0002/cc/idle/",
    ]  # fmt: skip
    idle = seen(*arrived, *signs).idle(1)
    assert {rank: event.idle_number for rank, event in idle.items()} == {0: 1, 1: 11}
    assert not seen(*arrived, *signs).endings(), "a sign is no ending"


class BoardClient:
    """What is posted, as the others would read it."""

    def __init__(self, watches: bool = True) -> None:
        self.watches, self.posted = watches, list[tuple[int, int]]()

    def report_idle(self, generation: int, number: int, content: Any) -> None:
        self.posted.append((generation, number))


def watch(board_client: BoardClient | None, limit: float = 600.0, number: int = 0, **changes: Any) -> Stalls:
    meter = Meter(lambda: 0, "/nowhere")
    told = launch(number, **changes)
    return Stalls(told, limit, board_client, meter, LinePrinter(), lambda: "line", lambda why: None)  # type: ignore[arg-type]


def test_which_nodes_are_watched() -> None:
    assert watch(BoardClient()).watches
    assert not watch(BoardClient(), limit=0).watches, "0 turns it off"
    assert not watch(None).watches, "nobody can be told"
    assert not watch(BoardClient(watches=False)).watches, "a single node waits for nobody"
    assert not watch(BoardClient(), gang=False).watches
    services = [{"name": "main", "replicas": 1, "service": True, "minFailed": 1, "minSucceeded": None}]
    services.append({**services[0], "name": "worker", "replicas": 2, "service": False})
    assert not watch(BoardClient(), roles=services).watches, "a service waits by its nature"
    assert watch(BoardClient(), number=1, roles=services).watches


def test_which_nodes_only_report_a_stall() -> None:
    assert watch(BoardClient(), gang=False).reports
    alone = [{"name": "main", "replicas": 1, "service": False, "minFailed": 1, "minSucceeded": None}]
    assert watch(BoardClient(watches=False), roles=alone).reports
    assert watch(None, roles=alone).reports, "without a bucket, too"
    assert not watch(None, roles=alone, limit=0).reports
    assert not watch(None, gang=False).reports, "a node does not know what the others do"
    assert not watch(BoardClient()).reports, "a stall ends it"


@pytest.mark.parametrize("number", [0, 2])
def test_a_stall_of_a_run_that_is_no_gang_is_reported_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], number: int
) -> None:
    monkeypatch.setattr("launcher.stalls.threading.Thread", lambda **_: SimpleNamespace(start=lambda: None))
    told, board_client = list[str](), BoardClient()
    found = watch(board_client, gang=False, number=number)
    found.report = told.append
    found.begin(1, "eth0")
    assert not found.stalled(here(0, 1, 2))
    found._idleness.seconds = found.limit
    assert not found.stalled(here(number))
    assert (told, board_client.posted) == ([], [(1, 1)]), "others may compute, and this one wait for them"
    for _ in range(2):
        assert not found.stalled(here(0, 1, 2))
    idle = "idle: no output, progress, processor, disk or network use on any node for 10 min (`stallMinutes`)"
    assert told == [idle]
    assert not found.stalled(here(number))
    assert not found.stalled(here(0, 1, 2))
    found._idleness.seconds = 0
    assert not found.stalled(here(0, 1, 2))
    assert told == [idle, "", idle, ""]
    assert board_client.posted == [(1, 1), (1, 2)]
    out = capfd.readouterr().out
    assert out.count(f"{idle}; that does not end such a run\n") == 2
    assert "active again: another node\n" in out


def test_what_looks_at_an_idle_node_does_not_make_it_active() -> None:
    idle = Idleness(QUIET, last=BEFORE, seconds=600)
    idle.excuse()
    assert idle.add(reading(ticks={(7, "a"): 500 + 9 * HZ}), 60, 60) == ()
    assert idle.seconds == 660
    assert idle.add(reading(ticks={(7, "a"): 500 + 19 * HZ}), 60, 60) == ("processor",), "once only"


@pytest.fixture
def idle_watch(monkeypatch: pytest.MonkeyPatch) -> Stalls:
    found = watch(BoardClient())
    monkeypatch.setattr("launcher.stalls.threading.Thread", lambda **_: SimpleNamespace(start=lambda: None))
    found.begin(1, "eth0")
    found._idleness.seconds = found.limit
    return found


def here(*idle: int, ended: str = "") -> Board:
    names = [here_name(1, rank, f"n{rank}", f"10.0.0.{rank}") for rank in range(3)]
    names += [idle_name(1, rank, f"n{rank}", 1) for rank in idle]
    names += [board.end_name(1, 2, "n2", ended, 0)] if ended else []
    return seen(*names)


def test_a_gang_has_stalled_when_every_rank_is_idle(idle_watch: Stalls) -> None:
    assert idle_watch.stalled(here(0, 1)) == "", "rank 2 compiles, or loads data"
    told = idle_watch.stalled(here(0, 1, 2))
    assert (
        told == "stalled: no output, progress, processor, disk or network use on any rank for 10 min (`stallMinutes`)"
    )


def test_the_only_node_that_does_anything_says_so_once(idle_watch: Stalls, capfd: pytest.CaptureFixture[str]) -> None:
    told = list[str]()
    idle_watch.report = told.append
    idle_watch._idleness.seconds = 0
    for _ in range(2):
        assert not idle_watch.stalled(here(1))
        assert not idle_watch.stalled(here(1, 2))
    waited_for = "the other nodes have done nothing for 10 min, and may wait for this one"
    assert told == [waited_for, "", waited_for]
    assert capfd.readouterr().out.count(waited_for) == 2
    idle_watch._idleness.seconds = idle_watch.limit
    idle_watch.stalled(here(1, 2))
    assert told[-1].startswith("idle: "), "now it does nothing, either"


def test_what_ends_when_every_rank_is_idle_ended_because_of_the_stall(idle_watch: Stalls) -> None:
    """Another rank may be ending its processes, and has not said so yet."""
    assert not idle_watch.explains_end(here(0, 1, 2)), "this node has not reported that it is idle"
    idle_watch.stalled(here(1))
    assert not idle_watch.explains_end(here(0, 1))
    assert idle_watch.explains_end(here(0, 1, 2))


def test_the_limit_begins_again_when_a_rank_succeeds(idle_watch: Stalls, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("launcher.stalls.time", SimpleNamespace(monotonic=lambda: now[0]))
    assert idle_watch.stalled(here(0, 1)) == "", "rank 2 writes what the others wait for"
    ended = here(0, 1, ended=board.SUCCEEDED)
    assert idle_watch.stalled(ended) == "", "the others need a moment to go on"
    now[0] += idle_watch.limit - 1
    assert idle_watch.stalled(ended) == ""
    now[0] += 1
    assert idle_watch.stalled(ended), "they had the whole limit, and did nothing"


def test_an_idle_report_is_withdrawn_and_repeated(idle_watch: Stalls) -> None:
    board_client: Any = idle_watch.board_client
    idle_watch.stalled(here())
    idle_watch.stalled(here())
    idle_watch._idleness.add(BEFORE, 1, 1)
    assert idle_watch.stalled(here(1, 2)) == "", "this rank is active again, whatever the others are"
    idle_watch._idleness.seconds = idle_watch.limit
    assert idle_watch.stalled(here(1, 2))
    assert board_client.posted == [(1, 1), (1, 2), (1, 3)]


def test_another_generation_begins_from_zero(idle_watch: Stalls) -> None:
    board_client: Any = idle_watch.board_client
    assert idle_watch.stalled(here(0, 1, 2))
    idle_watch.end()
    assert idle_watch.stalled(here(0, 1, 2)) == "", "nothing runs"
    idle_watch.begin(2, "eth0")
    assert idle_watch.stalled(here(0, 1, 2)) == ""
    assert board_client.posted == [(1, 1)]


def test_a_stall_is_a_failure_that_a_retry_policy_counts() -> None:
    assert not Retries(0).allows_retry(exits.STALLED, 1.0)
    retries = Retries(1)
    assert retries.allows_retry(exits.STALLED, 1.0)
    retries.charge(exits.STALLED, 1.0)
    assert not retries.allows_retry(exits.STALLED, 1.0)
