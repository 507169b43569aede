# SPDX-License-Identifier: Apache-2.0
"""The watch of a node counts what is on its disk, whatever the node does meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localcloud.hosts import usage_watch
from localcloud.hosts.usage_watch import UsageWatch
from tests.support.moving_files import MOVING
from tests.support.waiting import LONGEST_SECONDS, eventually

MEBIBYTE = 1 << 20
# Like a node's first process: it stops all others of the node, or lets them go on.
_FIRST = """
import os, signal, sys
signals = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    exec(sys.argv[1])
    os._exit(0)
print("started", flush=True)
sends = {signal.SIGUSR1: signal.SIGSTOP, signal.SIGUSR2: signal.SIGCONT, signal.SIGTERM: signal.SIGKILL}
while True:
    number = signal.sigwait(signals)
    try: os.killpg(pid, sends[number])
    except ProcessLookupError: pass
    if number == signal.SIGTERM: break
"""


@contextmanager
def node(folder: Path, code: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", _FIRST, code], cwd=folder, stdout=subprocess.PIPE) as first:
        assert first.stdout
        assert first.stdout.readline()
        try:
            yield first.pid
        finally:
            first.send_signal(signal.SIGTERM)


def wait_for(file: Path) -> None:
    eventually(file.exists, bool, 60)


def watch(
    pid: int, folder: Path, disk: int = 64 * MEBIBYTE, files: int = 1000, shared: Path | None = None
) -> UsageWatch:
    limits = {"disk": disk, "inodes": files, "output": 1 << 30}
    return UsageWatch(pid, [str(folder)], limits, True, str(folder / "none"), [str(shared)] if shared else [])


def reason(seen: UsageWatch, seconds: float) -> str:
    """Why the node has to end, within this time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if why := seen.check():
            return why
        time.sleep(0.05)
    return ""


@pytest.mark.parametrize(("disk", "files"), [(64 * MEBIBYTE, 1 << 20), (1 << 40, 840)], ids=["bytes", "files"])
def test_data_that_moves_while_it_is_counted_is_counted(tmp_path: Path, disk: int, files: int) -> None:
    own, others = tmp_path / "own", tmp_path / "others"
    own.mkdir()
    others.mkdir()
    for number in range(2000):
        (others / str(number)).touch()
    with (others / "large").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 512 * MEBIBYTE)
    with node(own, MOVING.replace("MOST", "60").replace("2000", "400")) as pid:
        seen = watch(pid, own, disk, files)
        assert seen.check() == ""
        # Others free more than this node may use. That hides nothing of it.
        shutil.rmtree(others)
        assert reason(seen, LONGEST_SECONDS).startswith(("it wrote more than", "it made more than"))


def test_a_node_within_its_limits_goes_on(tmp_path: Path) -> None:
    code = "import time\nwhile True: open('now', 'w').write(str(time.monotonic())); time.sleep(0.01)"
    with node(tmp_path, code) as pid:
        seen = watch(pid, tmp_path)
        wait_for(tmp_path / "now")
        assert reason(seen, 1) == ""
        with seen._stopped() as stopped:
            assert stopped
            before = (tmp_path / "now").read_text()
            time.sleep(0.1)
            assert (tmp_path / "now").read_text() == before
        eventually((tmp_path / "now").read_text, lambda text: text not in ("", before), 60)


_HIDDEN = {
    "mapped": "import mmap, os, time\nf = open('f', 'w+b'); f.write(b'x' * 8192); f.flush(); os.unlink('f')\n"
    "m = mmap.mmap(f.fileno(), 4096); f.close(); open('ready', 'w').close(); time.sleep(600)",
    "in a message": "import os, socket, time\nf = open('f', 'wb'); os.unlink('f'); ends = socket.socketpair()\n"
    "socket.send_fds(ends[0], [b'x'], [f.fileno()]); f.close(); open('ready', 'w').close(); time.sleep(600)",
    "nothing": "import time\nopen('ready', 'w').close(); time.sleep(600)",
}


@pytest.mark.parametrize("how", _HIDDEN)
def test_hidden_files_end_a_node_when_the_disk_is_nearly_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    with node(tmp_path, _HIDDEN[how]) as pid:
        seen = watch(pid, tmp_path)
        wait_for(tmp_path / "ready")
        assert seen.check() == ""
        size, files = seen._least[str(tmp_path)]
        monkeypatch.setattr(usage_watch, "_free_space", lambda folder: (int(size * 0.9), int(files * 2)))
        assert ("files there that have no name" in seen.check()) is (how != "nothing")


def test_when_the_disk_is_nearly_full_the_largest_nodes_end_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "file").write_bytes(b"x" * MEBIBYTE)
    with node(tmp_path, "import time; time.sleep(600)") as pid:
        small, large = (watch(pid, tmp_path / name, 2 * MEBIBYTE) for name in ("small", "large"))
        shared = watch(pid, tmp_path / "small", 2 * MEBIBYTE, shared=tmp_path / "large")
        size, files = small._least[str(tmp_path / "small")]
        monkeypatch.setattr(usage_watch, "_free_space", lambda folder: (int(size * 0.3), int(files * 2)))
        assert large.check() == "", "little is always allowed"
        monkeypatch.setattr(usage_watch, "_ALWAYS_ALLOWED", (0, 0))
        assert small.check() == ""
        assert "because the disk is nearly full" in large.check()
        assert "the storages" in shared.check()
