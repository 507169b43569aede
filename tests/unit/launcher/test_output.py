# SPDX-License-Identifier: Apache-2.0
"""The output of processes in a node's output: complete lines at once, redrawn lines in parts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from launcher.redraws import whole_lines

ROOT = Path(__file__).resolve().parents[3]
# Runs the scripts as a node does, one process for each.
NODE = """
import os, sys, time
from launcher.processes import ChildProcesses, Spec
children = ChildProcesses()
for number, script in enumerate(sys.argv[1:]):
    children.start(Spec([sys.executable, "-u", "-c", script], os.environ, f"[0.{number}] ", "/"))
while children.running:
    time.sleep(0.02)
children.clear(1)
"""
BAR = """
import os, time
for step in range(101):
    os.write(1, f"\\r{step}% ✓█".encode()[:-1])
    time.sleep(0.01)
    os.write(1, "█".encode()[-1:])
    time.sleep(0.02)
"""


def printed(*scripts: str) -> list[bytes]:
    done = subprocess.run(
        [sys.executable, "-c", NODE, *scripts], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    assert not done.stderr
    return done.stdout.removesuffix(b"\n").split(b"\n")


def raw(lines: list[bytes]) -> dict[bytes, bytes]:
    """The output of each process, without line ends."""
    found: defaultdict[bytes, bytes] = defaultdict(bytes)
    for line in lines:
        match = re.fullmatch(rb"\[0\.(\d)\+?\] (.*)", line, re.DOTALL)
        assert match, line
        found[match[1]] += match[2]
    return found


def test_every_byte_of_a_bar_comes_in_few_parts() -> None:
    """A character whose bytes are written separately is complete in the output."""
    began = time.monotonic()
    lines = printed(BAR + "print()", BAR)
    seconds = time.monotonic() - began
    bar = "".join(f"\r{step}% ✓█" for step in range(101)).encode()
    assert raw(lines) == {b"0": bar, b"1": bar}
    parts = [line for line in lines if b"+]" in line]
    assert 2 <= len(parts) <= seconds + 1, "one a second for the whole node"
    assert {part[3:4] for part in parts} == {b"0", b"1"}, "each in its turn"
    assert not [line for line in lines if "\ufffd" in line.decode(errors="replace")]
    assert sorted(whole_lines(line.decode() for line in lines)) == ["[0.0] 100% ✓█", "[0.1] 100% ✓█"]


def test_nested_bars_are_one_block() -> None:
    """As tqdm draws them: a line break leads to the row of the inner bar, and the cursor goes up again."""
    script = """
import time
print("before", flush=True)
for outer in range(3):
    print(end=f"\\r outer {outer}", flush=True)
    for inner in range(40):
        print(end=f"\\n\\r inner {inner}\\x1b[A", flush=True)
        time.sleep(0.02)
    print(end="\\n\\r         \\r\\x1b[A", flush=True)
print(end="\\r outer 3\\n", flush=True)
print("after")
"""
    lines = printed(script)
    assert len(lines) < 10
    assert whole_lines(line.decode() for line in lines) == [
        "[0.0] before", "[0.0]  outer 0", "[0.0]  outer 3", "[0.0] after",
    ]  # fmt: skip


def test_ordinary_lines_are_unchanged() -> None:
    script = "print('a\\r\\nb\\n\\n  c  \\x1b[31m\\n' + 'é' * 5000); print(end='no end')"
    assert printed(script) == [
        b"[0.0] a\r", b"[0.0] b", b"[0.0] ", b"[0.0]   c  \x1b[31m", b"[0.0] " + "é".encode() * 5000, b"[0.0] no end",
    ]  # fmt: skip


def test_a_long_line_is_cut_between_characters() -> None:
    lines = printed("print('é' * 5_000_000)")
    assert b"".join(line.removeprefix(b"[0.0] ") for line in lines) == "é".encode() * 5_000_000
    assert max(map(len, lines)) < 150_000
    for line in lines:
        line.decode()


def test_a_bar_drawn_without_pause_does_not_flood_the_log() -> None:
    """Only its last drawings count. A carriage return alone drops nothing."""
    lines = printed("for n in range(400_000): print(end=f'\\r{n} of many')", "print(end='\\r' + 'x' * 60_000)")
    assert len(lines) < 10
    assert sum(map(len, lines)) < 200_000
    assert set(whole_lines(line.decode() for line in lines)) == {"[0.0] 399999 of many", "[0.1] " + "x" * 60_000}


BAR_AT = "{percent:3}%|{bar}| {step}/48 [00:0{second}<00:01, 41.2it/s, loss=0.1]"


def test_the_bar_of_a_quick_run_is_its_last_drawing() -> None:
    """It ended before a part was due: status and log have the end all the same."""
    script = f"""
import sys
for step in (16, 32, 48):
    print(end={BAR_AT!r}.format(percent=100 * step // 48, bar="#", step=step, second=1) .join(["\\r", ""]))
    if step == 16:
        print("epoch 0: accuracy 0.562")
print()
"""
    code = NODE + "print(children.bar)"
    done = subprocess.run(
        [sys.executable, "-c", code, script], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    *lines, bar = done.stdout.decode().removesuffix("\n").split("\n")
    assert bar == BAR_AT.format(percent=100, bar="#", step=48, second=1)
    assert whole_lines(lines) == [
        "[0.0] " + BAR_AT.format(percent=33, bar="#", step=16, second=1), "[0.0] epoch 0: accuracy 0.562",
        "[0.0] " + bar,
    ]  # fmt: skip


def test_a_complaint_that_says_nothing_is_passed_on_once() -> None:
    """Ray Train's question to the dashboard, which is off."""
    complaint = "(PlacementGroupCleaner pid=8) Failed to query Ray Train Controller actor state. Going on"
    script = f"for _ in range(20): print({complaint!r})"
    code = NODE.replace("ChildProcesses()", "ChildProcesses(noise_of('ray', 1))").replace(
        "import os", "from launcher.activity import noise_of; import os"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, script + "\nprint('trained')"], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120, check=True,
    )  # fmt: skip
    assert [line.partition(" ")[2][:30] for line in done.stdout.splitlines()] == [
        "(PlacementGroupCleaner pid=8) ", "trained",
    ]  # fmt: skip
