# SPDX-License-Identifier: Apache-2.0
"""What the jobs of this folder start: the nodes meet where the operator of PyTorchJobs says, and number themselves."""

from __future__ import annotations

import os
import socket
import sys
import time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
assert sys.argv[1:] == ["--epochs", "2"]
assert os.environ["OMP_NUM_THREADS"] == "2"
if rank == 0:
    with socket.create_server(("", place[1])) as server:
        others = [server.accept()[0] for _ in range(world - 1)]
        ranks = sorted(int(other.recv(100)) for other in others)
        assert ranks == list(range(1, world))
        for other in others:
            other.sendall(b"all are here")
else:
    until = time.monotonic() + 60
    while True:
        try:
            first = socket.create_connection(place, timeout=60)
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
    first.sendall(str(rank).encode())
    assert first.recv(100) == b"all are here"
print(f"rank {rank} of {world}: all are here")
