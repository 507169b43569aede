# SPDX-License-Identifier: Apache-2.0
"""Passes on the output of a node's processes line by line. A line that is redrawn, such as a progress bar, is passed on
in parts (launcher/redraws.py). After a failure, the ends of a framework's own logs are printed too."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Callable, Sequence

from launcher.redraws import part_prefix
from launcher.walking import Budget, open_file, regular_files

_CHUNK = 1 << 16
_POLL_SECONDS = 0.02
# Each part is an entry of a cloud's log, which costs money: a node passes on at most one in this many seconds.
PART_SECONDS = 1.0
# The largest part in bytes. Of a line that is redrawn faster, only the last drawings are passed on. docker cuts lines
# at 16 KiB.
_PART = 15_000
_MOST_ROWS = 50
# Ends of lines, and sequences that move the cursor to another row; and an incomplete sequence at the end of a read.
_ROWS, _BEGUN = re.compile(rb"\n|\x1b\[(\d{0,5})([ABEF])"), re.compile(rb"\x1b(\[\d{0,5})?\Z")
# Sequences, perhaps incomplete, that move the cursor up.
_UP = re.compile(rb"\x1b(\[\d{0,5}([AF]|\Z)|\Z)")
_BAR = 4096

Take = Callable[[Sequence[bytes]], None]
_SUFFIXES = (".err", ".log", ".out")
_FILES, _LINES, _BYTES = 8, 4, 32_768
# A frame of a C++ stack, and the heading of such stacks, perhaps with the prefix of a log.
_FRAME = re.compile(
    r"(\[[^\]]*\] (\(\S+\) )?\S+:\d+: )?\s*"
    r"(\*\*\* .*stack ?trace.*\*\*\*|@\s+0x[0-9a-f]+|PC: @|#\d+ +0x|\S+\(\S*\+?0x[0-9a-f]+\))",
    re.IGNORECASE,
)
_ENTRIES, _SECONDS = 2000, 2.0


@dataclass(eq=False)
class _Stream:
    """The output of one process since the last line that was passed on.

    `above`: how many rows the cursor is above the last one; this many line breaks do not end a line. `waits`: since
    when a part of a redrawn line waits. `goes_on`: a part of the line has been passed on.
    """

    take: Take
    # The prefix of parts. Empty: lines of this process are not passed on in parts.
    part: bytes = b""
    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    room: int = _PART
    drawn: bool = False
    above: int = 0
    begun: bytes = b""
    waits: float = 0.0
    goes_on: bool = False
    # The end of the parts so far.
    tail: bytes = b""

    def add(self, data: bytes) -> list[bytes]:
        """Adds output, and returns the lines that end in it."""
        data, self.begun = self.begun + data, b""
        if self.above or (b"\x1b" in data and _UP.search(data)):
            return self._add_by_rows(data)
        first, *more = data.split(b"\n")
        self._keep(first)
        if not more:
            return self._cut()
        lines = [self._end(), *more[:-1]]
        self._keep(more[-1])
        return lines + self._cut()

    def _add_by_rows(self, data: bytes) -> list[bytes]:
        begun = _BEGUN.search(data)
        if begun:
            data, self.begun = data[: begun.start()], begun[0]
        lines, place = [], 0
        for found in _ROWS.finditer(data):
            if found[0] != b"\n":
                count = max(1, int(found[1] or 1))
                self.above = min(max(0, self.above + (count if found[2] in b"AF" else -count)), _MOST_ROWS)
                continue
            self._keep(data[place : found.start()])
            place = found.end()
            if self.above:
                # The cursor moves down to an existing row. A line break would end the entry in the log.
                self.above -= 1
                self._keep(b"\x1b[E")
            else:
                lines.append(self._end())
        self._keep(data[place:])
        return lines + self._cut()

    def _keep(self, data: bytes) -> None:
        if not data:
            return
        self.parts.append(data)
        self.size += len(data)
        if not self.drawn and (b"\r" in data or b"\b" in data or self.above):
            self.drawn, self.waits = True, time.monotonic()

    def _end(self) -> bytes:
        line, self.drawn, self.goes_on = self._text(), False, False
        return line

    def _cut(self) -> list[bytes]:
        """Cuts an endless line into pieces. Of a line that is redrawn too fast it keeps the last drawings."""
        if self.drawn and self.part and self.size > self.room:
            text = self._text()
            self._put_back(text[max(0, text.find(b"\r", -_PART // 2, len(text.rstrip()))) :])
        if self.size <= _CHUNK:
            return []
        text = self._text()
        whole = len(text) - _open_character(text)
        self._put_back(text[whole:])
        self.drawn = self.goes_on = False
        return [text[:whole]]

    def close(self) -> list[bytes]:
        """The last line, if it did not end; an empty one after a line that was passed on in parts."""
        self._keep(self.begun)
        goes_on, line = self.goes_on, self._end()
        return [line] if line or goes_on else []

    def next_part(self) -> bytes:
        """The next part of a redrawn line, up to the last whole character. Blanks and carriage returns at its end are
        left for the next part, because clouds strip them from an entry."""
        text = self._text()
        part = text[: len(text) - _open_character(text)].rstrip()
        self._put_back(text[len(part) :])
        self.waits = time.monotonic()
        if part:
            self.tail = ((self.tail if self.goes_on else b"") + part)[-_BAR:]
            self.goes_on = True
        return part

    @property
    def due(self) -> float:
        """When the next part may be passed on."""
        return self.waits + PART_SECONDS if self.part and self.drawn and self.size else float("inf")

    def _text(self) -> bytes:
        text = b"".join(self.parts)
        self._put_back(b"")
        return text

    def _put_back(self, text: bytes) -> None:
        self.parts, self.size = [text] if text else [], len(text)
        self.room = max(_PART, 2 * self.size)


class Output:
    """Passes on the output of processes, in a thread of its own.

    `complaint` matches lines that processes print because they hang. They are passed on (with `once`: only the first),
    but do not count as activity.
    """

    def __init__(self, complaint: re.Pattern[bytes] | None = None, once: bool = False) -> None:
        self._complaint, self._once, self._has_complained = complaint, once, False
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        # The streams that processes have not closed.
        self._streams: tuple[_Stream, ...] = ()
        self._passed_at = 0.0
        self.written = 0
        self.last = self.bar = b""
        self._thread: threading.Thread | None = None

    def show(self, process: subprocess.Popen[bytes], prefix: str) -> None:
        """Prints the process's lines, each whole and with the prefix."""
        mark = prefix.encode()
        self._add(process, _Stream(lambda lines: _write_lines(mark, lines), part_prefix(prefix).encode()))

    def give(self, process: subprocess.Popen[bytes], take: Take) -> None:
        """Gives the process's lines to `take`. An empty list means the end of the output."""
        self._add(process, _Stream(take))

    def _add(self, process: subprocess.Popen[bytes], stream: _Stream) -> None:
        assert process.stdout is not None
        with self._lock:
            self._streams = (*self._streams, stream)
        self._selector.register(process.stdout, selectors.EVENT_READ, stream)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="output", daemon=True)
            self._thread.start()

    def drain(self, seconds: float) -> None:
        """Waits until all processes have closed their output."""
        deadline = time.monotonic() + seconds
        while self._streams and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select(self._pass_on_part()):
                data = os.read(key.fd, _CHUNK)
                self._pass_on(key.data, data)
                if not data:
                    self._selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]  # a pipe's stream, never a number
                    with self._lock:
                        self._streams = tuple(stream for stream in self._streams if stream is not key.data)

    def _pass_on_part(self) -> float | None:
        """Passes on a part of the line that has waited longest, if it is due. Returns when the next part is due."""
        first = min(self._streams, key=lambda stream: stream.due, default=None)
        if first is None or first.due == float("inf"):
            return None
        wait = max(first.due, self._passed_at + PART_SECONDS) - time.monotonic()
        if wait > 0:
            return wait
        part = first.next_part()
        if part:
            self._passed_at = time.monotonic()
            self.last, self.bar = part, first.tail
            _write_lines(first.part, [part])
        return 0.0

    def _pass_on(self, stream: _Stream, data: bytes) -> None:
        tail = stream.tail if stream.goes_on else b""
        lines = stream.add(data) if data else stream.close()
        self._listen(lines, data)
        # A redrawn line ends with its last drawing, which no part has had: the bar at 100 %.
        for before, line in zip((tail, *(b"" for _ in lines)), lines):
            if before or b"\r" in line.rstrip(b"\r"):
                self.bar = (before + line)[-_BAR:]
        shown = self._without_repeats(lines)
        if shown:
            stream.take(shown)
        if not data:
            stream.take(())

    def _without_repeats(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        if not self._once or self._complaint is None:
            return lines
        kept = []
        for line in lines:
            is_complaint = self._complaint.search(line) is not None
            if not (is_complaint and self._has_complained):
                kept.append(line)
            self._has_complained = self._has_complained or is_complaint
        return kept

    def _listen(self, lines: Sequence[bytes], data: bytes) -> None:
        own = [line for line in lines if line.strip() and not (self._complaint and self._complaint.search(line))]
        self.last = own[-1] if own else self.last
        # A progress bar counts at each redraw; a complaint may be written in pieces, so only whole lines count.
        whole = sum(map(len, own)) + data.count(b"\r")
        self.written += whole if self._complaint else len(data)


def _open_character(text: bytes) -> int:
    """The number of bytes at the end that belong to an incomplete character of UTF-8."""
    for count in range(1, min(4, len(text) + 1)):
        byte = text[-count]
        if byte >= 0xC0:
            return count if count < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else 0
        if byte < 0x80:
            return 0
    return 0


def _write_lines(prefix: bytes, lines: Sequence[bytes]) -> None:
    data = b"".join(prefix + line + b"\n" for line in lines)
    with suppress(OSError):
        while data:
            data = data[os.write(1, data) :]


def ends_of_logs(scratch: str) -> Iterator[str]:
    """The last lines of the newest log files, the newest file first."""
    found = regular_files(scratch, lambda name, status, folder: True, Budget(_ENTRIES, _SECONDS))
    logs = [(status.st_mtime, name) for name, status in found if status.st_size and name.endswith(_SUFFIXES)]
    for _, name in sorted(logs, reverse=True)[:_FILES]:
        try:
            # Frames of a stack come after the reason.
            with os.fdopen(open_file(scratch, name), "rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - _BYTES))
                lines = log.read().decode("utf-8", "replace").splitlines()
            lines = [line for line in lines if line.strip() and not _FRAME.match(line)][-_LINES:]
        except OSError:
            continue  # its writer removed it
        if lines:
            yield f"the end of {name}:"
            yield from (f"  {line}" for line in lines)
