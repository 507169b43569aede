# SPDX-License-Identifier: Apache-2.0
"""A gang that adds a number at rank 0 in each step, with nothing but Python. In the fourth step, one rank does what it
is told: `--victim 1 --does sleep`. Without a victim, it ends after `--steps`."""

from __future__ import annotations

import argparse
import mmap
import os
import signal
import socket
import sys
import threading
import time

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
HOST, _, PORT = os.environ.get(
    "MEETING", f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
).rpartition(":")
STEP_OF_THE_DEED, PAUSE = 4, 0.1


def meet() -> list[socket.socket]:
    """Rank 0's connections by rank, or the one to rank 0."""
    if RANK == 0:
        server = socket.create_server((HOST, int(PORT)))
        accepted = [server.accept()[0] for _ in range(WORLD - 1)]
        return [connection for _, connection in sorted((connection.recv(1)[0], connection) for connection in accepted)]
    for _ in range(600):
        try:
            connection = socket.create_connection((HOST, int(PORT)), timeout=5)
        except OSError:
            time.sleep(PAUSE)
            continue
        connection.settimeout(None)
        connection.sendall(bytes([RANK]))
        return [connection]
    raise SystemExit("nobody is at the meeting")


def read_number(connection: socket.socket) -> int:
    content = b""
    while len(content) < 8:
        received = connection.recv(8 - len(content))
        if not received:
            raise ConnectionError("Connection closed by peer")
        content += received
    return int.from_bytes(content, "big")


def add_numbers(connections: list[socket.socket], number: int) -> int:
    """The sum of all ranks' numbers, on each of them."""
    if RANK:
        connections[0].sendall(number.to_bytes(8, "big"))
        return read_number(connections[0])
    total = number + sum(read_number(connection) for connection in connections)
    for connection in connections:
        connection.sendall(total.to_bytes(8, "big"))
    return total


def read_shard(name: str) -> None:
    """What a victim does in place of the step that the others are in."""
    if name == "sleep":
        time.sleep(900)
    elif name == "lock":
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    elif name == "spin":
        while True:
            pass
    elif name == "raise":
        raise ValueError(ARGUMENTS.says)
    elif name == "exit":
        print(ARGUMENTS.says, flush=True)
        sys.exit(3)
    elif name == "leave":
        sys.exit(0)
    elif name == "abort":
        os.abort()
    elif name == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif name == "hog":
        kept = mmap.mmap(-1, 4 << 30)
        for start in range(0, len(kept), 4096):
            kept[start] = 1
    elif name == "full":
        with open("/dev/full", "wb", buffering=0) as disk:
            disk.write(bytes(1 << 20))
    elif name.startswith("fill="):
        with open(os.path.join(name[5:], "scratch"), "wb", buffering=0) as scratch:
            for _ in range(1 << 11):
                scratch.write(bytes(1 << 20))
    else:
        raise SystemExit(f"nobody knows how to {name}")


def deed_of_innocents(name: str, step: int) -> None:
    """What looks like trouble and is none."""
    if name == "quotes" and step == STEP_OF_THE_DEED:
        print(
            f"rank {1 - min(RANK, 1)} died: RuntimeError: Connection closed by peer; it used all its memory", flush=True
        )
    elif name == "late" and step == 1 and RANK == WORLD - 1:
        time.sleep(4)
    elif name == "busy" and step == STEP_OF_THE_DEED and RANK == 0:
        end = time.monotonic() + 6
        while time.monotonic() < end:
            pass
    elif name == "talks":
        print("\n".join(f"step {step} line {line} \x1b[31mred\x1b[0m" for line in range(200)), flush=True)


parser = argparse.ArgumentParser()
parser.add_argument("--victim", type=int, default=-1)
parser.add_argument("--does", default="nothing")
parser.add_argument("--says", default="")
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--case", default="")
ARGUMENTS = parser.parse_args()


def train() -> None:
    connections = meet()
    for step in range(1, ARGUMENTS.steps + 1):
        if ARGUMENTS.victim < 0:
            deed_of_innocents(ARGUMENTS.does, step)
        total = add_numbers(connections, RANK + step)
        print(f"rank {RANK} of {WORLD} step {step} total {total}", flush=True)
        if step == STEP_OF_THE_DEED and ARGUMENTS.victim == RANK:
            read_shard(ARGUMENTS.does)
        time.sleep(PAUSE)


train()
