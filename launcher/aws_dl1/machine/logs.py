# SPDX-License-Identifier: Apache-2.0
"""Forwards a container's output to a stream of CloudWatch Logs. No line is lost.

docker keeps the lines. A file beside the start's record has the position of the last delivery, so a new process
resumes after it. Only after a kill between a delivery and its record is that delivery sent twice.
"""

from __future__ import annotations

import calendar
import http.client
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.aws_dl1.fetch import AwsError, Identity
from launcher.aws_dl1.machine.facts import read_json_object, write_json
from launcher.aws_dl1.services import call_json_service
from launcher.printing import LinePrinter

# CloudWatch's own limits of a batch; each event counts 26 bytes in addition.
_EVENTS, _BYTES, _MORE, _LONGEST = 10000, 1048576, 26, 262144 - 26
_FLUSH_SECONDS = 1.0
_LONGEST_PAUSE = 20.0
_LAST_SECONDS = 60.0
_EXISTS, _MISSING = "ResourceAlreadyExistsException", "ResourceNotFoundException"


@dataclass
class Stream:
    """One stream of a log group."""

    identity: Identity
    group: str
    name: str
    say: LinePrinter
    _made: bool = field(default=False, init=False)

    def put(self, events: list[dict[str, Any]]) -> None:
        """Puts events, which are ordered by time. AwsError or OSError: CloudWatch did not take them."""
        if not self._made:
            self._make()
        request = {"logGroupName": self.group, "logStreamName": self.name, "logEvents": events}
        try:
            answer = call_json_service(self.identity, "logs", "PutLogEvents", request)
        except AwsError as error:
            self._made = error.name != _MISSING
            raise
        if answer.get("rejectedLogEventsInfo"):
            self.say("CloudWatch did not take lines that are too old or too new for it")

    def _make(self) -> None:
        try:
            call_json_service(
                self.identity, "logs", "CreateLogStream", {"logGroupName": self.group, "logStreamName": self.name}
            )
        except AwsError as error:
            if error.name != _EXISTS:
                raise
        self._made = True


class Forwarder:
    """Follows a container's output in a thread. `mark` is the file with the position of the last delivery."""

    def __init__(self, stream: Stream, container: str, mark: Path) -> None:
        self._stream, self._container, self._mark = stream, container, mark
        self._lines: list[tuple[str, str]] = []
        self._room = threading.Condition()
        self._ended = False
        self._hurry = 0.0
        position = read_json_object(mark) or {}
        self._moment, self._same = str(position.get("moment", "")), int(position.get("same", 0))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._writer = threading.Thread(target=self._write, daemon=True)

    def start(self) -> None:
        self._reader.start()
        self._writer.start()

    def finish(self) -> bool:
        """Waits for the delivery of all lines, up to `_LAST_SECONDS`. False if some were not delivered."""
        self._hurry = time.monotonic() + _LAST_SECONDS
        self._reader.join(_LAST_SECONDS)
        with self._room:
            self._ended = True
            self._room.notify_all()
        self._writer.join(_LAST_SECONDS)
        return not self._lines and not self._writer.is_alive()

    def _read(self) -> None:
        since = ["--since", self._moment] if self._moment else []
        words = ["docker", "logs", "--follow", "--timestamps", *since, self._container]
        first, behind = self._moment, self._same
        try:
            process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except OSError as error:
            self._stream.say(f"the container's output cannot be read: {error.strerror}")
            return
        assert process.stdout is not None
        for raw in process.stdout:
            moment, _, text = raw.decode(errors="replace").rstrip("\r\n").partition(" ")
            # `--since` includes the lines of that very moment again.
            if moment < first:
                continue
            if behind and moment == first:
                behind -= 1
                continue
            with self._room:
                # docker keeps the lines that we do not read yet.
                self._room.wait_for(lambda: len(self._lines) < _EVENTS or self._ended)
                self._lines.append((moment, text))
        process.wait()

    def _write(self) -> None:
        pause = _FLUSH_SECONDS
        while True:
            with self._room:
                self._room.wait_for(lambda: self._ended, timeout=pause)
                batch = list(_next_batch(self._lines))
                if not batch and self._ended:
                    return
            if not batch:
                continue
            try:
                self._stream.put([event for line in batch for event in _log_events(*line)])
            except (AwsError, OSError, http.client.HTTPException, ValueError) as error:
                if pause == _FLUSH_SECONDS:
                    self._stream.say(f"CloudWatch does not take the run's lines ({error}); trying again")
                if self._ended and time.monotonic() > self._hurry:
                    self._stream.say(f"{len(self._lines)} lines of the run are not in CloudWatch")
                    return
                pause = min(pause * 2, _LONGEST_PAUSE, max(self._hurry - time.monotonic(), 1) if self._ended else 60)
                continue
            pause = _FLUSH_SECONDS
            self._delivered(batch)

    def _delivered(self, batch: list[tuple[str, str]]) -> None:
        for moment, _ in batch:
            self._same = self._same + 1 if moment == self._moment else 1
            self._moment = moment
        write_json(self._mark, {"moment": self._moment, "same": self._same})
        with self._room:
            del self._lines[: len(batch)]
            self._room.notify_all()


def say_into(stream: Stream, text: str) -> None:
    """Puts a line of this program into the run's stream. A failure does not affect the run."""
    try:
        stream.put([{"timestamp": int(time.time() * 1000), "message": text or " "}])
    except (AwsError, OSError, http.client.HTTPException, ValueError) as error:
        stream.say(f"CloudWatch does not take this line: {error}")


def _next_batch(lines: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    size, count = 0, 0
    for line in lines:
        parts = 1 + len(line[1].encode()) // _LONGEST
        size, count = size + len(line[1].encode()) + parts * _MORE, count + parts
        if count > 1 and (size > _BYTES or count > _EVENTS):
            return
        yield line


def _log_events(moment: str, text: str) -> Iterator[dict[str, Any]]:
    content = text.encode()
    for begin in range(0, max(len(content), 1), _LONGEST):
        part = content[begin : begin + _LONGEST].decode(errors="replace")
        yield {"timestamp": _docker_milliseconds(moment), "message": part or " "}


def _docker_milliseconds(moment: str) -> int:
    """The milliseconds of a time by docker, which has nanoseconds."""
    try:
        whole = calendar.timegm(time.strptime(moment[:19], "%Y-%m-%dT%H:%M:%S"))
        return whole * 1000 + int((moment[20:23] or "0").rstrip("Z").ljust(3, "0"))
    except ValueError:
        return int(time.time() * 1000)
