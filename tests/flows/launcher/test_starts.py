# SPDX-License-Identifier: Apache-2.0
"""Starts of one run, one after another or at the same time. Each meets and writes in a folder of its own."""

from __future__ import annotations

import os
import re
import signal
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import unquote

import pytest

from schemas.model import Job, Retry, Role
from tests.support.counts import wanted
from tests.support.nodes import BUCKET, Nodes, Place, nodes, planned, waited

# Prints the addresses of the nodes, and writes them to its output. With a second argument, it then waits until it is
# ended.
SAYS = """
import os, sys, time
met = f"{os.environ['RANK']} of {os.environ['WORLD_SIZE']} meets {os.environ['MASTER_ADDR']}"
print(met, flush=True)
with open(os.environ["TRAINYARD_OUTPUT"] + "/met", "w") as file:
    file.write(met)
time.sleep(300 if sys.argv[1:] else 0)
"""
OLD, NEW = ([f"127.0.{start}.{rank + 1}" for rank in range(2)] for start in (1, 2))


def gang(retries: int = 0) -> Job:
    roles = {"main": Role(1, retry=Retry(retries)), "worker": Role(1, retry=Retry(retries))}
    return planned("pytorch", roles, ports={"data": "all"})


def end(run: Nodes, how: str) -> None:
    """What happens to an old start before the new one begins."""
    for rank, started in run.launchers.items():
        started.says(rf"{rank} of 2 meets {OLD[0]}")
    number = {"killed": signal.SIGKILL, "cancelled": signal.SIGTERM}.get(how)
    for started in run.launchers.values() if number else ():
        started.process.send_signal(number or 0)
    if number or how == "finished":
        run.codes()


@pytest.mark.parametrize("old", ["alive", "killed", "cancelled", "finished"])
def test_a_new_start_finds_only_its_own_nodes(place: Place, tmp_path: Path, old: str) -> None:
    """The new start begins while heartbeats of the old one are still valid, at other addresses."""
    name = f"again-{old}"
    changes = {"command": ["train.py", *(["waits"] if old != "finished" else [])]}
    with nodes(place, tmp_path / "old", gang(), name, addresses=OLD, changes=changes) as before:
        before.script(SAYS)
        before.start()
        end(before, old)
        with nodes(place, tmp_path / "new", gang(), name, addresses=NEW, changes={"command": ["train.py"]}) as after:
            after.script(SAYS)
            # The main node comes last. Until then, that of the old start must not be taken for it.
            after.start(1)
            after.start(0)
            assert after.codes() == [0, 0]
            for rank, started in after.launchers.items():
                assert f"{rank} of 2 meets {NEW[0]}" in started.text
            assert {place.status(after, rank)["address"] for rank in (0, 1)} == set(NEW)
            assert place.content(f"{after.folder}/output/met") == f"0 of 2 meets {NEW[0]}".encode()
        if old == "alive":
            assert all(started.process.poll() is None for started in before.launchers.values()), before.shown()
        if old == "finished":
            assert place.content(f"{before.folder}/output/met") == f"0 of 2 meets {OLD[0]}".encode()
        assert {place.status(before, rank)["address"] for rank in (0, 1)} == set(OLD)


CLOCK = """
import time
real = time.time
time.time = lambda: real() + {seconds}
"""


def test_restarted_nodes_of_a_start_rendezvous_despite_wrong_clocks(place: Place, tmp_path: Path) -> None:
    """One launcher is killed and begun again with its job run, as after a kill of the local cloud; then all retry."""
    script = """
import os, sys, time
life = len([name for name in os.listdir() if name.startswith("life-" + os.environ["RANK"])])
open(f"life-{os.environ['RANK']}-{life}", "w").close()
print("life", life, "meets", os.environ["MASTER_ADDR"], flush=True)
both = ("life-0-1", "life-1-1")
deadline = time.monotonic() + 120
while life == 0 and time.monotonic() < deadline:
    time.sleep(0.05)
while not all(map(os.path.exists, both)) and time.monotonic() < deadline:
    time.sleep(0.05)
if life == 1 and os.environ["RANK"] == "1":
    sys.exit(7)
while life == 1 and not all(map(os.path.exists, ("life-0-2", "life-1-2"))) and time.monotonic() < deadline:
    time.sleep(0.05)
"""
    (tmp_path / "off").mkdir()
    (tmp_path / "off" / "sitecustomize.py").write_text(CLOCK.format(seconds=400))
    with nodes(place, tmp_path, gang(retries=1), "returns", changes={"command": ["train.py"]}) as run:
        run.script(script)
        late = {"PYTHONPATH": f"{tmp_path / 'off'}{os.pathsep}{run.environment(1)['PYTHONPATH']}"}
        run.start(0).start(1, **late)
        for rank in (0, 1):
            run.launchers[rank].says("life 0")
        first = dict(run.launchers)
        for started in first.values():
            started.process.kill()
            started.code()
        run.start(0).start(1, **late)
        assert run.codes() == [0, 0]
        assert "rank 1 (worker-0) failed, so all ranks start again" in run.launchers[0].text
        assert sorted(path.name for path in tmp_path.glob("life-*")) == [
            f"life-{rank}-{life}" for rank in (0, 1) for life in (0, 1, 2)
        ]


# Writes one checkpoint after another, each with the name of its start, and says what it began with.
WRITES = """
import os, sys, time
start, waits_for = sys.argv[1:]
folder = os.environ["TRAINYARD_CHECKPOINTS"]
print("resumes from", len(os.listdir(folder)), "checkpoints", flush=True)
deadline = time.monotonic() + 300
while not os.path.exists(waits_for) and time.monotonic() < deadline:
    time.sleep(0.1)
for number in range(1500):
    with open(f"{folder}/{start}-{number}", "w") as file:
        file.write(start)
    print("wrote", number, flush=True)
    if os.path.exists(f"{start}-ends"):
        break
    time.sleep(0.2)
"""


def writer(place: Place, home: Path, start: str, waits_for: Path, name: str) -> AbstractContextManager[Nodes]:
    spec = planned("pytorch", {"main": 1}, ports={"data": "all"})
    changes = {"command": ["train.py", start, str(waits_for)]}
    return nodes(place, home, spec, name, changes=changes, variables={"TRAINYARD_LOST_SECONDS": "4"})


@pytest.mark.parametrize(
    "how", ["killed", *(pytest.param(how, marks=pytest.mark.torture) for how in ("alive", "asleep"))]
)
def test_an_old_start_writes_no_checkpoint_after_the_new_one_has_restored(
    place: Place, tmp_path: Path, how: str
) -> None:
    """A live old start continues without writing checkpoints. A suspended one notices the new start when it resumes.
    The new start does not wait for one that was killed while it wrote.
    """
    name, begins = f"fenced-{how}", tmp_path / "begins"
    kept, writers = f"train/{name}/checkpoints/", f"train/{name}/checkpoints.writers/"
    with (
        writer(place, tmp_path / "old", "old", tmp_path, name) as old,
        writer(place, tmp_path / "new", "new", begins, name) as new,
    ):
        for run in (old, new):
            run.script(WRITES)
        old.start()
        waited(lambda: bool(place.objects(kept)))
        launcher = old.launchers[0].process
        if how != "alive":
            # At any point, and, in this test, also in the middle of a write.
            launcher.send_signal(signal.SIGSTOP if how == "asleep" else signal.SIGKILL)
            start = old.folder.rpartition("/")[2]
            place.world.clients.storage.put_object(place.namespace, BUCKET, f"{writers}writing/{start}/0000/4", b"{}")
        new.start()
        count = int(new.launchers[0].says(r"resumes from (\d+) checkpoints")[1])
        restored = place.objects(kept)
        assert len(restored) == count
        if how == "asleep":
            launcher.send_signal(signal.SIGCONT)
        if how != "killed":
            old.launchers[0].says("a newer start of this run writes the checkpoints from now on")
            written = old.launchers[0].text.count("wrote")
            waited(lambda: old.launchers[0].text.count("wrote") > written + 15)
        assert place.objects(kept) == restored
        begins.touch()
        waited(lambda: f"{kept}new-0" in place.objects(kept))
        (new.home / "new-ends").touch()
        assert new.codes() == [0]
        if how != "killed":
            (old.home / "old-ends").touch()
            assert old.codes() == [0], "training goes on, and its own end is its own"
            assert old.launchers[0].text.count("a newer start of this run") == 1
        assert [one for one in place.objects(kept) if "/new-" not in one] == restored
        assert place.objects(writers) == [f"{writers}claims/{new.folder.rpartition('/')[2]}"]


HEARD = """
import http.client
real = http.client.HTTPConnection.request
def request(self, method, url, *more, **options):
    with open({file!r}, "a") as heard:
        heard.write(f"{{method}} {{url}}\\n")
    return real(self, method, url, *more, **options)
http.client.HTTPConnection.request = request
"""


def test_a_thousand_older_starts_cost_nothing(place: Place, tmp_path: Path) -> None:
    """The bucket is asked for the start's own folder and for the checkpoints, never for a folder of all starts."""
    storage, heard = place.world.clients.storage, tmp_path / "heard"
    (tmp_path / "listens").mkdir()
    (tmp_path / "listens" / "sitecustomize.py").write_text(HEARD.format(file=str(heard)))
    with nodes(place, tmp_path, gang(), "thousand", changes={"command": ["train.py"]}) as run:
        run.script(SAYS)
        for number in range(wanted(20, 1000)):
            older = f"train/thousand/1/start{number:07}"
            storage.put_object(place.namespace, BUCKET, f"{older}/peers/g0/0000/nonce/here/127.0.0.9", b"{}")
        variables = {"PYTHONPATH": f"{tmp_path / 'listens'}{os.pathsep}{run.environment(0)['PYTHONPATH']}"}
        assert run.start(**variables).codes() == [0, 0]
        lists = {unquote(line) for line in heard.read_text().splitlines() if "?prefix=" in line}
        prefixes = {re.sub(r".*[?]prefix=([^&]*)&.*", r"\1", line) for line in lists}
        assert f"{run.folder}/peers/" in prefixes
        allowed = (f"{run.folder}/", "train/thousand/checkpoints/", "train/thousand/checkpoints.writers/")
        assert all(prefix.startswith(allowed) for prefix in prefixes), prefixes
        assert not [line for line in heard.read_text().splitlines() if "start0" in line]
