# SPDX-License-Identifier: Apache-2.0
"""Which start may write checkpoints, for every order of reads and writes of an old and a new start."""

from __future__ import annotations

import io
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from launcher import fence
from launcher.errors import MissingError
from launcher.fence import Fence, FencedError
from launcher.object_store import Connection
from launcher.oci.bucket import BucketFolder
from launcher.oci.principal import Signer
from launcher.printing import LinePrinter
from launcher.readiness import Wait
from launcher.stores import Stored, StoreError
from tests.support.counts import FIRST, wanted


@dataclass
class Store:
    """Objects with the store's own time, which every write moves on; `between` runs before each call."""

    objects: dict[str, float] = field(default_factory=dict)
    between: Callable[[], None] = lambda: None
    refuses: int = 0
    now: float = 1_700_000_000.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, name: str, new: bool) -> None:
        with self.lock:
            if self.refuses:
                raise StoreError(self.refuses, "refused")
            if new and name in self.objects:
                raise StoreError(412, "it is there")
            self.now += 0.001
            self.objects[name] = self.now

    def list(self) -> list[Stored]:
        with self.lock:
            return [Stored(name, _text(at), 2, "etag") for name, at in sorted(self.objects.items())]


class MemoryFolder(BucketFolder):
    """A folder whose objects lie in a store of this process."""

    def __init__(self, store: Store) -> None:
        super().__init__("oci://b@n/checkpoints.writers", Connection("http://127.0.0.1:9", Signer({}), LinePrinter()))
        self.store = store

    def list(self, below: str) -> list[Stored]:
        self.store.between()
        return self.store.list()

    def put(self, name: str, content: bytes, new: bool = False) -> str:
        self.store.between()
        self.store.put(name, new)
        return "etag"

    def remove(self, name: str) -> None:
        self.store.between()
        with self.store.lock:
            self.store.objects.pop(name, None)


def _text(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{at % 1:.6f}"[2:] + "Z"


class Said(LinePrinter):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def __call__(self, text: str) -> None:
        self.lines.append(text)


def made(store: Store, start: str, rank: int = 0, lost_after: float = 60.0) -> Fence:
    return Fence(lambda: MemoryFolder(store), start, rank, Said(), lost_after)


def wait(seconds: float = 30.0) -> Wait:
    return Wait(LinePrinter(), lambda: "the checkpoints", seconds, "do this")


def said(one: Fence) -> list[str]:
    assert isinstance(one.say, Said)
    return one.say.lines


@pytest.mark.parametrize("seed", range(FIRST, FIRST + wanted(40, 4000)))
def test_nothing_of_an_old_start_is_written_after_a_new_one_has_restored(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both starts run at the same time, with random waits before each call. The rule holds in any order."""
    monkeypatch.setattr(fence, "_LOOK_SECONDS", 0.002)
    lot = random.Random(seed)
    store = Store(between=lambda: time.sleep(lot.choice((0.0, 0.0, 0.001, 0.003))))
    written: list[str] = []
    old, new = made(store, "old"), made(store, "new")
    old.enter(wait(), 0.0)
    ended = threading.Event()

    def goes_on_writing() -> None:
        while not ended.is_set():
            with old.writing() as may:
                for _ in range(lot.randrange(3) if may else 0):
                    if old.may_write():
                        time.sleep(lot.choice((0.0, 0.002)))
                        written.append("old")

    writer = threading.Thread(target=goes_on_writing)
    writer.start()
    try:
        time.sleep(lot.random() / 100)
        new.enter(wait(), 0.0)
        written.append("restored")
        time.sleep(0.02)
    finally:
        ended.set()
        writer.join()
    assert written[-1] == "restored"
    assert (old.excluded, new.excluded) == (True, False)
    assert len(said(old)) == 1
    assert "a newer start of this run writes the checkpoints" in said(old)[0]
    assert not [name for name in store.objects if "old" in name], "what it left is tidied away"


def test_of_two_simultaneous_starts_only_one_writes() -> None:
    for seed in range(wanted(20, 500)):
        lot = random.Random(seed)
        store = Store(between=lambda lot=lot: time.sleep(lot.choice((0.0, 0.001))))  # type: ignore[misc]
        both = [made(store, name) for name in ("one", "two")]
        threads = [threading.Thread(target=one.enter, args=(wait(), 0.0)) for one in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        writes = []
        for one in both:
            with one.writing() as may:
                writes.append(may)
        assert sorted(writes) == [False, True]


def test_all_nodes_of_a_start_write_whoever_came_first() -> None:
    store = Store()
    nodes = [made(store, "new", rank) for rank in range(3)]
    for one in nodes:
        one.enter(wait(), 0.0)
        one.enter(wait(), 0.0)
    for one in nodes:
        with one.writing() as may:
            assert may
    assert list(store.objects) == ["claims/new"], "between its writings a start leaves no more than its claim"


def test_a_dead_writer_delays_others_only_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a new start waits: not at all if the old one was killed long ago, otherwise for the old one's heartbeat
    timeout."""
    monkeypatch.setattr(fence, "_LOOK_SECONDS", 0.01)
    clock = [0.0]
    monkeypatch.setattr(fence, "_seconds_since_boot", lambda: clock[0])
    store = Store()
    store.objects |= {"claims/old": store.now, "writing/old/0003/60": store.now, "writing/odd/name": store.now}
    store.now += 61.0
    made(store, "new").enter(wait(0.0), 0.0)
    assert list(store.objects) == ["claims/new"]

    store.objects["writing/new/0003/60"] = store.now
    store.between = lambda: clock.__setitem__(0, clock[0] + 7.0)
    made(store, "newer").enter(wait(), 0.0)
    assert 60.0 < clock[0] < 120.0
    clock[0] = 0.0
    store.objects["writing/newer/0003/600"] = store.now
    with pytest.raises(MissingError, match=r"an earlier start of this run to stop writing checkpoints \(rank 3\)"):
        made(store, "newest").enter(wait(0.2), 0.0)


def test_a_writer_that_pauses_too_long_does_not_finish_its_upload(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(fence, "_seconds_since_boot", lambda: clock[0])
    one = made(Store(), "old")
    one.enter(wait(), 0.0)
    with one.writing() as may:
        assert may
        body = one.guarded(io.BytesIO(b"half and half"))
        assert body.read(4) == b"half"
        clock[0] += 31.0
        with pytest.raises(FencedError):
            body.read(4)
        with pytest.raises(StoreError):
            one.may_write()
    with one.writing() as may:
        assert may, "heard again, and nobody has come"
        assert one.may_write()


def test_a_long_write_renews_its_token_and_notices_newer_starts() -> None:
    store = Store()
    old, new = made(store, "old", lost_after=0.6), made(store, "new", lost_after=0.6)
    old.enter(wait(), 0.0)
    with old.writing() as may:
        assert may
        first = store.objects["writing/old/0000/1"]
        deadline = time.monotonic() + 30
        while store.objects["writing/old/0000/1"] == first and time.monotonic() < deadline:
            time.sleep(0.01)
        assert store.objects["writing/old/0000/1"] > first
        comes = threading.Thread(target=new.enter, args=(wait(), 0.0))
        comes.start()
        while old.may_write() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert old.excluded
        assert comes.is_alive(), "the write in flight is waited for"
    comes.join()


def test_a_node_waits_for_access_to_the_folder() -> None:
    """Without access the checkpoints are restored, but no new ones are uploaded."""
    store = Store(refuses=404)
    one = made(store, "new")
    one.enter(wait(), 0.0)
    assert one.excluded
    assert said(one) == ["checkpoints of this start are not uploaded: refused"]
    with one.writing() as may:
        assert not may
    late = made(store, "late")
    threading.Timer(0.3, setattr, (store, "refuses", 0)).start()
    late.enter(wait(), 30.0)
    assert not late.excluded


def test_an_emptied_folder_still_belongs_to_the_start() -> None:
    store = Store()
    one = made(store, "new")
    one.enter(wait(), 0.0)
    store.objects.clear()
    with one.writing() as may:
        assert may
