# SPDX-License-Identifier: Apache-2.0
"""Servers under measurement, ours and moto's, with a plain HTTP client that sends prepared requests."""

from __future__ import annotations

import http.client
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import psutil

from bench.harness.rows import Aim, Row, Spent
from tests.support.client_environment import environment

MOTO = Path(__file__).parents[1] / "moto-requirements.txt"


@dataclass(frozen=True)
class PreparedRequest:
    """A request that is made before the measurement, so that only the server is measured."""

    method: str
    target: str
    body: bytes
    headers: dict[str, str]


class Server:
    """A server under measurement, and one keep-alive connection to it."""

    def __init__(self, endpoint: str, pid: int) -> None:
        self.address = urlsplit(endpoint).netloc
        self._process = psutil.Process(pid)
        self._connection = http.client.HTTPConnection(self.address, timeout=60)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: PreparedRequest) -> bytes:
        self._connection.request(request.method, request.target, request.body, request.headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{request.method} {request.target}: {answer.status} {content[:300]!r}")
        return content

    def _family(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]

    def processor(self) -> float:
        """Processor seconds that it has used."""
        times = [one.cpu_times() for one in self._family()]
        return float(sum(one.user + one.system for one in times))

    def memory(self) -> float:
        """Resident memory in megabytes, with its children's."""
        return float(sum(one.memory_info().rss for one in self._family())) / 1e6


Kind = TypeVar("Kind", bound=Server)


@dataclass
class Timed(Generic[Kind]):
    """One server, and the times of each kind of call."""

    server: Kind
    took: dict[str, list[Spent]] = field(default_factory=dict)

    def time(self, what: str, requests: Sequence[PreparedRequest]) -> list[bytes]:
        processor, start = self.server.processor(), time.perf_counter()
        answers = [self.server.send(request) for request in requests]
        clock = time.perf_counter() - start
        spent = Spent(clock / len(requests), (self.server.processor() - processor) / len(requests))
        self.took.setdefault(what, []).append(spent)
        return answers


def compared(ours: Timed[Any], moto: Timed[Any], aim: Aim) -> Iterator[Row]:
    """A row for each kind of call."""
    return (call_row(what, taken, moto.took[what], "moto", aim) for what, taken in ours.took.items())


def call_row(name: str, taken: Sequence[Spent], floor: Sequence[Spent], against: str, aim: Aim) -> Row:
    ratio = statistics.median(one.processor for one in taken) / statistics.median(one.processor for one in floor)
    clock, other = (statistics.median(one.clock for one in side) * 1000 for side in (taken, floor))
    return Row(name, clock, "ms", against, other, ratio, aim)


@contextmanager
def moto_server(kind: Callable[[str, int], Kind]) -> Iterator[Kind]:
    """A new server of moto's, with no objects."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(environment(MOTO) / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield _reached(f"http://127.0.0.1:{port}", process, kind)
        finally:
            process.terminate()


def _reached(endpoint: str, process: subprocess.Popen[bytes], kind: Callable[[str, int], Kind]) -> Kind:
    deadline = time.monotonic() + 60
    while True:
        try:
            return kind(endpoint, process.pid)
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
