# SPDX-License-Identifier: Apache-2.0
"""Stacks as text: what is read of py-spy and faulthandler, which line is the team's, and what fits into an object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from launcher.board import Board, parse_board_events, parse_stack_requests, rfc3339_seconds
from launcher.printing import LinePrinter
from launcher.stacks import report
from launcher.stacks.frames import (
    HANDLER,
    MAIN_THREAD,
    MOST_FRAMES,
    MOST_THREADS,
    PROC,
    Frame,
    ProcessStack,
    ThreadStack,
    parse_handler_dump,
    parse_py_spy_dump,
    runs_event_loop,
)
from launcher.stacks.naming import find_rank_place
from launcher.stacks.report import REQUEST, Stacks, limited_text
from launcher.stacks.taking import StackTaker
from launcher.status import StatusReporter
from launcher.stores import Stored
from tests.support.documents import launch

CODE = "/home/run/code"
LIBRARY = "/usr/lib/python3.11"
PACKAGES = "/opt/env/lib/python3.12/site-packages"
REDUCE = Frame("all_reduce", f"{PACKAGES}/torch/distributed/distributed_c10d.py", 2501)
TRAIN = Frame("train", f"{CODE}/train.py", 41)
EVALUATE = Frame("evaluate", f"{CODE}/lib/evaluate.py", 11)
MODULE = Frame("<module>", f"{CODE}/train.py", 60)


def process(pid: int, *frames: Frame, parent: int = 1, how: str = HANDLER) -> ProcessStack:
    return ProcessStack(pid, parent, how, "python train.py", (ThreadStack(MAIN_THREAD, frames),))


def test_a_dump_of_faulthandler_is_read() -> None:
    text = (
        "Stack (most recent call first):\n"
        f'  File "{CODE}/a "quoted", line 3 in x.py", line 41 in <lambda>\n'
        "  File ???, line ??? in ???\n"
        f'  File "{CODE}/train.py", line 99999999999999999999 in <module>\n'
        "  ...\n  <no Python frame>\nExtension modules: numpy (total: 1)\n"
    )
    (thread,) = parse_handler_dump(text)
    assert thread.name == MAIN_THREAD
    assert thread.frames == (
        Frame("<lambda>", f'{CODE}/a "quoted", line 3 in x.py', 41),
        Frame("???", "???", 0),
        Frame("<module>", f"{CODE}/train.py", 999999999),
    )
    assert parse_handler_dump("") == parse_handler_dump("\0\x1b[2J") == ()
    (thread,) = parse_handler_dump('  File "a", line 1 in f\n' * 10_000)
    assert len(thread.frames) == MOST_FRAMES


# As a worker of Dask writes it.
SERVES = f"""\
  File "/usr/lib/python3.11/selectors.py", line 468 in select
  File "/usr/lib/python3.11/asyncio/base_events.py", line 1884 in _run_once
Thread Profile
  File "/opt/lib/python3.11/site-packages/distributed/profile.py", line 371 in _watch
Thread Dask-Default-Threads-9-1
  File "{CODE}/train.py", line 9 in clean
  File "/opt/lib/python3.11/site-packages/distributed/worker.py", line 3012 in apply_function
"""


def test_a_process_that_serves_events_is_where_its_other_threads_are_in_the_teams_code() -> None:
    threads = parse_handler_dump(SERVES)
    assert [thread.name for thread in threads] == [MAIN_THREAD, "Profile", "Dask-Default-Threads-9-1"]
    assert runs_event_loop(threads)
    assert not runs_event_loop(threads[1:])
    where, waits = find_rank_place([ProcessStack(7, 1, HANDLER, "worker", threads)], CODE, [7])
    assert (where, waits) == ({"function": "clean", "file": "train.py", "line": 9}, None)
    idle, waits = find_rank_place([ProcessStack(7, 1, HANDLER, "worker", threads[:2])], CODE, [7])
    assert (idle, waits and waits["function"]) == (None, "select")


def test_a_dump_of_py_spy_is_read_main_thread_first() -> None:
    frames = [{"name": "Net.forward", "filename": "/a.py", "line": 7}, {"name": None, "line": -1}, "no frame"]
    threads = [
        {"os_thread_id": 12, "thread_name": "odd\x1b", "frames": []},
        {"os_thread_id": 9, "thread_name": None, "frames": frames},
    ]
    main, other = parse_py_spy_dump(json.dumps(threads).encode(), 9)
    assert main == ThreadStack(MAIN_THREAD, (Frame("forward", "/a.py", 7), Frame("None", "???", 0)))
    assert other == ThreadStack("odd\x1b", ())
    many = [{"os_thread_id": number, "frames": [{"name": "f"}] * 200} for number in range(200)]
    read = parse_py_spy_dump(json.dumps(many).encode(), 199)
    assert (len(read), read[0].name, len(read[0].frames)) == (MOST_THREADS, MAIN_THREAD, MOST_FRAMES)


@pytest.mark.parametrize("content", [b"", b"[", b"{}", b"null", b'[1, "a", null]', b"[" * 100_000, b"\xff\xfe"])
def test_what_is_no_dump_of_py_spy_is_no_stack(content: bytes) -> None:
    assert parse_py_spy_dump(content, 1) == ()


def names(*stacks: ProcessStack, commands: tuple[int, ...] = (2, 3, 4, 5)) -> tuple[str, str]:
    where, waits = find_rank_place(stacks, CODE, commands)
    return (f"{where['function']} {where['file']}:{where['line']}" if where else "", waits["function"] if waits else "")


def test_the_teams_innermost_frame_is_named_and_what_it_waits_in() -> None:
    assert names(process(2, REDUCE, TRAIN, MODULE)) == ("train train.py:41", "all_reduce")
    assert names(process(2, EVALUATE, TRAIN, MODULE)) == ("evaluate lib/evaluate.py:11", ""), "it is in its own code"
    assert names(process(2, REDUCE)) == ("", "all_reduce"), "no frame of the team"
    assert names(process(2)) == names() == ("", "")
    assert names(process(2, TRAIN, how=PROC)) == ("", ""), "the kernel's words are no frames of Python"


@pytest.mark.parametrize("file", [
    f"{PACKAGES}/lightning/trainer.py", f"{LIBRARY}/threading.py", "/usr/lib/python3/dist-packages/torch/x.py",
    "/opt/env/bin/torchrun", "<frozen runpy>", "<string>", "???", report.__file__, "/usr/lib/python311.zip/json.py",
])  # fmt: skip
def test_libraries_are_not_the_teams(file: str) -> None:
    assert names(process(2, Frame("wait", file, 1))) == ("", "wait")


def test_code_elsewhere_is_the_teams_if_there_is_none_in_the_folder() -> None:
    other = Frame("main", "/workspace/app.py", 3)
    assert names(process(2, REDUCE, other)) == ("main /workspace/app.py:3", "all_reduce")
    assert names(process(2, REDUCE, other, TRAIN)) == ("train train.py:41", "all_reduce")
    assert names(process(2, REDUCE, Frame("main", "train.py", 3))) == ("main train.py:3", "all_reduce"), "Python 3.8"


AGENT = Frame("_invoke_run", f"{PACKAGES}/torch/distributed/elastic/agent/server/api.py", 900)
WAITS = Frame("wait", f"{LIBRARY}/subprocess.py", 1264)
LOADER = Frame("_worker_loop", f"{PACKAGES}/torch/utils/data/_utils/worker.py", 1)


def test_of_many_processes_the_one_that_trains_is_named() -> None:
    torchrun = process(2, AGENT, Frame("<module>", "/opt/env/bin/torchrun", 8))
    assert names(torchrun, process(3, REDUCE, TRAIN, parent=2)) == ("train train.py:41", "all_reduce")
    starter = process(2, WAITS, Frame("main", f"{CODE}/start.py", 5))
    assert names(starter, process(3, REDUCE, TRAIN, parent=2)) == ("train train.py:41", "all_reduce")
    assert names(starter, process(3, how=PROC, parent=2)) == ("main start.py:5", "wait"), "its child is no Python"
    # A loader by fork has the frames of the process that made it.
    loader = process(4, LOADER, EVALUATE, MODULE, parent=3)
    assert names(process(3, REDUCE, TRAIN), loader) == ("train train.py:41", "all_reduce")


def test_services_beside_the_command_do_not_count() -> None:
    server, polls = process(9, WAITS), process(2, how=PROC)
    assert names(server, polls) == ("", ""), "where the command is, is unknown"
    assert names(server, process(2, REDUCE, TRAIN)) == ("train train.py:41", "all_reduce")
    assert names(server, commands=(9,)) == ("", "wait"), "a node that only serves"


def test_of_several_that_train_the_one_that_is_elsewhere_is_named() -> None:
    waiting = [process(number, REDUCE, TRAIN, MODULE) for number in (2, 3, 5)]
    assert names(*waiting, process(4, EVALUATE, MODULE)) == ("evaluate lib/evaluate.py:11", "")
    assert names(*waiting) == ("train train.py:41", "all_reduce")


def test_requests_are_read_and_unknown_names_are_skipped() -> None:
    old, new = "2026-05-01T11:00:00Z", "2026-05-01T12:00:01Z"
    listed = [
        Stored("peers/stacks/00000000000000b0", new, 2, ""), Stored("peers/stacks/00000000000000a0", old, 2, ""),
        Stored("peers/stacks/00000000000000A1", new, 2, ""), Stored("peers/stacks/../../x", new, 2, ""),
        Stored("peers/stacks/", new, 2, ""), Stored("peers/g0/0001/ab/here/10.0.0.1", new, 2, ""),
    ]  # fmt: skip
    since = rfc3339_seconds("2026-05-01T12:00:00Z")
    assert parse_stack_requests(listed, since) == ("00000000000000b0",), "an older one was for an earlier launcher"
    assert parse_stack_requests(listed, 0.0) == (), "this node has not arrived"
    assert len(parse_board_events(listed)) == 1, "launchers of earlier releases skip requests, too"


class Store:
    """What a node posts."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}

    def post(self, name: str, content: Any) -> None:
        self.objects[name] = content

    def post_bytes(self, name: str, content: bytes) -> None:
        self.objects[name] = content.decode()


class Children:
    running, command_pids = ("one",), (7,)


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> Stacks:
    """Stacks of a node whose processes have hostile names."""
    evil = Frame("a\x1b[2J\n::error::", f"{CODE}/\udcff\u202e.py", 3)
    found = [process(7, REDUCE, evil), ProcessStack(8, 7, PROC, "sh -c 'token hunter22'", ())]
    monkeypatch.setattr(StackTaker, "take_stacks", lambda *_: found)
    store, told = Store(), launch(1)
    reporter = StatusReporter(told, store, "/nowhere")  # type: ignore[arg-type]
    say = LinePrinter(secrets=["hunter22"])
    made = Stacks(told, {}, say, store, reporter, Children())  # type: ignore[arg-type]
    made.begin(CODE)
    return made


def test_an_object_and_a_row_of_the_status_say_where_a_node_is(stacks: Stacks, capfd: Any) -> None:
    stacks.take(report.FAILURE)
    objects = stacks.board_client.objects  # type: ignore[union-attr]
    lines = objects["stacks/1-1.txt"].splitlines()
    head = json.loads(lines[1])
    assert lines[0] == "trainyard stacks 1"
    assert head == {"rank": 1, "node": "worker-0", "cause": "failure", "at": head["at"], "request": ""}
    assert lines[2:] == [
        "process 7: how handler: python train.py", "  thread MainThread",
        f"    all_reduce ({REDUCE.file}:2501)", f"    a\ufffd[2J\ufffd::error:: ({CODE}/\ufffd\ufffd.py:3)",
        "process 8: how proc: sh -c 'token ****'",
    ]  # fmt: skip
    (row,) = objects["status/1.json"]["stacks"]
    where = {"function": "a\ufffd[2J\ufffd::error::", "file": "\ufffd\ufffd.py", "line": 3}
    waits = {"function": "all_reduce", "file": REDUCE.file, "line": 2501}
    assert row == {
        "object": "stacks/1-1.txt", "cause": "failure", "at": head["at"], "request": "", "where": where, "waits": waits,
    }  # fmt: skip
    assert "its code waits in all_reduce, called by a" in capfd.readouterr().out


def test_each_request_is_answered_once_and_the_status_keeps_the_last_four(
    stacks: Stacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "_PAUSE_SECONDS", 0.0)
    tokens = tuple(f"{number:016x}" for number in range(6))
    for _ in range(10):
        stacks.answer(Board((), 1.0, tokens))
    objects = stacks.board_client.objects  # type: ignore[union-attr]
    rows = objects["status/1.json"]["stacks"]
    assert [(row["object"], row["cause"], row["request"]) for row in rows] == [
        (f"stacks/1-{number + 1}.txt", REQUEST, tokens[number]) for number in range(2, 6)
    ]
    assert len([name for name in objects if name.startswith("stacks/")]) == 6


def test_many_requests_do_not_keep_a_node_busy(stacks: Stacks) -> None:
    for _ in range(3):
        stacks.answer(Board((), 1.0, ("0" * 16, "1" * 16)))
    assert len(stacks.board_client.objects) == 2, "an object and the status"  # type: ignore[union-attr]


def test_an_error_goes_no_further(stacks: Stacks, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a\nb")

    monkeypatch.setattr(StackTaker, "take_stacks", fail)
    stacks.take(report.STALL)
    assert "cannot be taken: RuntimeError('a\\nb')" in capfd.readouterr().out


def test_a_node_without_processes_or_with_the_variable_off_takes_none(stacks: Stacks) -> None:
    stacks.children = type("Ended", (), {"running": (), "command_pids": ()})()
    stacks.take(report.FAILURE)
    off = Stacks(
        stacks.launch, {report.VARIABLE: "0"}, stacks.say, stacks.board_client, stacks.reporter,
        Children(),  # type: ignore[arg-type]
    )  # fmt: skip
    off.take(report.FAILURE)
    assert not stacks.board_client.objects  # type: ignore[union-attr]
    assert off.variables == {}


@pytest.mark.parametrize(("own", "set_to"), [
    (None, "{}"), ("", "{}"), ("library", "{}:library"), (":/x", "{}::/x"),
])  # fmt: skip
def test_the_teams_folders_stay_in_pythonpath(stacks: Stacks, own: str | None, set_to: str) -> None:
    # Commands call the folder of stack files so.
    stacks.environment = {"TRAINYARD_STACKS": "/stacks", **({} if own is None else {"PYTHONPATH": own})}
    stacks.__post_init__()
    assert stacks.variables == {"PYTHONPATH": set_to.format(report.HANDLER_FOLDER)}
    assert sorted(file.name for file in report.HANDLER_FOLDER.glob("*.py")) == ["__init__.py", "sitecustomize.py"]


def test_an_object_has_a_limit() -> None:
    text = limited_text(["é" * 1000] * 1000)
    assert 250_000 < len(text) <= 256 * 1024
    assert text.decode().endswith("é\n… the rest is cut\n")
    assert limited_text(["a"]) == b"a\n"
