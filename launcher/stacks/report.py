# SPDX-License-Identifier: Apache-2.0
"""When stacks are taken, and how they are reported: an object for each time, a row of the node's status, and a line."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.board import Board
from launcher.board_client import BoardClient
from launcher.document import Launch
from launcher.escaping import terminal_line
from launcher.printing import LinePrinter
from launcher.processes import ChildProcesses
from launcher.settings import flag_setting
from launcher.stacks.frames import ProcessStack
from launcher.stacks.naming import Place, find_rank_place
from launcher.stacks.taking import StackTaker
from launcher.status import StatusReporter

VARIABLE = "TRAINYARD_TAKE_STACKS"
FAILURE, STALL, REQUEST = "failure", "stall", "request"
HANDLER_FOLDER = Path(__file__).resolve().parent / "handler"
# How long it may take. Nothing else happens on the node meanwhile, but signals are forwarded.
SECONDS = 2.0
# The pause between two answers, so that many requests do not slow the node down.
_PAUSE_SECONDS = 5.0
_MOST_BYTES = 256 * 1024
_LONGEST_TEXT = 300
_CUT = "… the rest is cut"


@dataclass
class Stacks:
    """Takes the stacks of this node's processes, and reports them."""

    launch: Launch
    environment: Mapping[str, str]
    say: LinePrinter
    board_client: BoardClient | None
    reporter: StatusReporter
    children: ChildProcesses
    _on: bool = field(init=False)
    _folder: str = field(default="", init=False)
    _count: int = field(default=0, init=False)
    _answered: set[str] = field(default_factory=set, init=False)
    _answered_at: float = field(default=float("-inf"), init=False)

    def __post_init__(self) -> None:
        self._on = flag_setting({VARIABLE: "1", **self.environment}, VARIABLE)

    @property
    def variables(self) -> dict[str, str]:
        """The variable by which every Python below the launcher gets the handler. It keeps the team's own folders."""
        if not self._on:
            return {}
        own = self.environment.get("PYTHONPATH")
        return {"PYTHONPATH": f"{HANDLER_FOLDER}{os.pathsep}{own}" if own else str(HANDLER_FOLDER)}

    def begin(self, folder: str) -> None:
        """Called before processes start. `folder` is that of the team's code."""
        self._folder = folder

    def answer(self, known: Board) -> None:
        """Answers a request, if there is one that this launcher has not answered."""
        if time.monotonic() - self._answered_at < _PAUSE_SECONDS:
            return
        for token in known.requests:
            if token not in self._answered:
                self._answered.add(token)
                self.take(REQUEST, token)
                self._answered_at = time.monotonic()
                return

    def take(self, cause: str, request: str = "") -> None:
        """Takes stacks and reports them. A failure must not get any further than this."""
        if not self._on or not (self.children.running or request):
            return
        try:
            taker = StackTaker(self.environment.get("PATH") or os.defpath)
            commands = self.children.command_pids
            found = taker.take_stacks(commands, SECONDS)
            self._report(found, find_rank_place(found, self._folder, commands), cause, request)
        except Exception as error:
            self.say(f"the stacks of this node's processes cannot be taken: {error!a}")

    def _report(self, found: Sequence[ProcessStack], place: Place, cause: str, request: str) -> None:
        self._count += 1
        name = f"stacks/{self.launch.rank}-{self._count}.txt"
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        where, waits = map(self._clean, place)
        head = {"rank": self.launch.rank, "node": self.launch.node, "cause": cause, "at": at, "request": request}
        lines = ["trainyard stacks 1", json.dumps(head), *self._lines(found)]
        told = ""
        if self.board_client is not None:
            self.board_client.post_bytes(name, limited_text(lines))
            told = f"; all stacks are in {name}"
        record = {"object": name, "cause": cause, "at": at, "request": request, "where": where, "waits": waits}
        halted = [stack.pid for stack in found if stack.halted]
        self.reporter.note_stacks({**record, "halted": True} if halted else record)
        self.say(f"{f'process {halted[0]} is stopped' if halted else describe_place(where, waits)}{told}")

    def _lines(self, found: Sequence[ProcessStack]) -> Iterator[str]:
        for stack in found:
            yield f"process {stack.pid}: how {stack.how}: {self._text(stack.command)}"
            for thread in stack.threads:
                yield f"  thread {self._text(thread.name)}"
                for frame in thread.frames:
                    yield f"    {self._text(frame.function)} ({self._text(frame.file)}:{frame.line})"

    def _clean(self, place: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if place is None:
            return None
        return {key: self._text(value) if isinstance(value, str) else value for key, value in place.items()}

    def _text(self, text: str) -> str:
        # Undecodable bytes of names are surrogates, which UTF-8 does not have.
        shown = terminal_line(self.say.masked(text)).encode(errors="replace").decode()
        return shown if len(shown) <= _LONGEST_TEXT else shown[:_LONGEST_TEXT] + "…"


def limited_text(lines: Sequence[str]) -> bytes:
    """The lines that fit into an object, and whether some did not."""
    parts, size, last = [], 0, f"{_CUT}\n".encode()
    for line in lines:
        part = f"{line}\n".encode()
        if size + len(part) > _MOST_BYTES - len(last):
            parts.append(last)
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def describe_place(where: Mapping[str, Any] | None, waits: Mapping[str, Any] | None) -> str:
    """Where the rank is in its code, for people."""
    known = where or waits
    if known is None:
        return "where its code is, is unknown"
    inside = f"waits in {waits['function']}, called by" if where and waits else "is in"
    return f"its code {inside} {known['function']} ({known['file']}:{known['line']})"
