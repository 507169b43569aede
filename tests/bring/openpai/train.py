# SPDX-License-Identifier: Apache-2.0
"""What the jobs of this folder start: each task meets the first one, which counts them."""

from __future__ import annotations

import argparse
import os
import socket
import time
from urllib.parse import urlsplit

parser = argparse.ArgumentParser()
parser.add_argument("--nodes", type=int, required=True)
parser.add_argument("--rank", type=int, required=True)
parser.add_argument("--meet", required=True)
arguments = parser.parse_args()
place = urlsplit(arguments.meet)
assert os.environ["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"] == str(arguments.rank)
assert os.environ["PAI_TASK_ROLE_INSTANCES"].count("worker:") == arguments.nodes
if arguments.rank == 0:
    with socket.create_server(("", place.port or 0)) as server:
        callers = [server.accept()[0] for _ in range(arguments.nodes - 1)]
        for caller in callers:
            caller.sendall(b"all are here")
else:
    until = time.monotonic() + 60
    while True:
        try:
            first = socket.create_connection((place.hostname or "", place.port or 0), timeout=60)
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
    assert first.recv(100) == b"all are here"
print(f"rank {arguments.rank} of {arguments.nodes}: all are here")
