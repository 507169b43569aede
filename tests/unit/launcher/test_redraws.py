# SPDX-License-Identifier: Apache-2.0
"""What a terminal would show of lines that are drawn over and over."""

from __future__ import annotations

import time

import pytest

from launcher.redraws import Lines, part_prefix, whole_lines


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("  1%|a\r 50%|ab\r100%|abc", ["100%|abc"]),
        ("longer text\rshort", ["shortr text"]),
        ("longer text\r\x1b[Kshort\r", ["short"]),
        ("10/10 [=>..]" + "\b" * 12 + " 9/10 [==>.]", [" 9/10 [==>.]"]),
        ("\x1b[1m3/3\x1b[0m \x1b[32m━━\x1b[0m", ["3/3 ━━"]),
        ("windows\r", ["windows"]),
        ("\r outer 1\x1b[E\r inner 1\x1b[A\r outer 2\x1b[E\r        \r", [" outer 2"]),
        ("inner\x1b[A\router", ["outer", "inner"]),
        ("a\tb\r", ["a   b"]),
        ("\x1b]0;title\x07x", ["\x1b]0;title\x07x"]),
        ("a\x1b[2J\rb", ["b"]),
        ("line 29 \x1b[2J", ["line 29"]),
        ("\x1b[99999999999Ca\x1b[5Db", ["ba"]),
        (
            "\rEpoch 1: 100%|██| 16/16 [00:00<00:00, 21.7it/s, train_loss=0.102]`Trainer.fit` stopped: done.",
            ["Epoch 1: 100%|██| 16/16 [00:00<00:00, 21.7it/s, train_loss=0.102]", "`Trainer.fit` stopped: done."],
        ),
        ("\r50%|██| 1/2 [0s, shape=[1, 2]]", ["50%|██| 1/2 [0s, shape=[1, 2]]"]),
    ],
)
def test_a_line_is_drawn_as_on_a_terminal(written: str, shown: list[str]) -> None:
    assert whole_lines([written]) == shown
    labels = ["[0] "] if len(shown) == 1 else ["[0] ", "[0] "]
    assert whole_lines([f"[0] {written}"]) == [f"{label}{row}" for label, row in zip(labels, shown, strict=True)]


def test_an_ordinary_line_is_not_touched() -> None:
    for line in ("", "  spaces  ", "a\ttab", "[0] text", "[x] text", "é" * 100_000):
        assert whole_lines([line]) == [line]


def test_parts_are_put_together_by_node_and_process() -> None:
    lines = Lines()
    assert lines.add("10", "[0+] \r 1%") == []
    assert lines.add("2", "[1.0+] 5%") == []
    assert lines.add("10", "[0.launcher] said") == ["[0.launcher] said"]
    assert lines.add("2", "[1.1+] 6%") == []
    assert lines.add("10", "[0+] \r 2%") == []
    assert lines.unfinished() == [("2", "[1.0] 5%"), ("2", "[1.1] 6%"), ("10", "[0]  2%")]
    assert lines.add("2", "[1.0] \r7%") == ["[1.0] 7%"]
    assert lines.add("10", "[0]") == ["[0]  2%"], "a cloud cuts off the blank of an empty line"
    assert lines.unfinished() == [("2", "[1.1] 6%")]
    assert lines.add("10", "[0] next") == ["[0] next"]
    assert part_prefix("[0.worker] ") == "[0.worker+] "


@pytest.mark.parametrize("unit", ["\rab", "\b\b\bx", "\x1b[99999A", "\x1b[99999Bx", "x\x1b[9999C\r", "\x1b[A\x1b[Ex"])
def test_no_line_takes_much_time_or_memory(unit: str) -> None:
    """Untrusted output may move the cursor far."""
    began = time.process_time()
    lines = Lines()
    for _ in range(20):
        lines.add("", "[0+] " + unit * 5000)
    assert sum(len(line) for _, line in lines.unfinished()) < 100_000
    assert time.process_time() - began < 10
