# SPDX-License-Identifier: Apache-2.0
"""`horovod_join.py COMMAND…`: joins the elastic run that the environment names, and then becomes the command.

The connection stays open as long as the command lives. So the rendezvous knows that this worker is there.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys

# EX_TEMPFAIL of sysexits, which is retried; and a shell's code for a missing program.
_TEMPORARY, _NOT_THERE = 75, 127
_SAY_EVERY = 10.0
# How long the others wait for a worker that was let in, or does not answer. Horovod's default is 30.
_PATIENCE = {"HOROVOD_GLOO_TIMEOUT_SECONDS": "60"}


def main(words: list[str]) -> int:
    """Becomes the command. Returns only if the worker could not join."""
    environment = os.environ
    rendezvous = environment["HOROVOD_GLOO_RENDEZVOUS_ADDR"], int(environment["HOROVOD_GLOO_RENDEZVOUS_PORT"])
    try:
        line = socket.create_connection(rendezvous, timeout=_SAY_EVERY)
        who = f"{environment['HOROVOD_HOSTNAME']}:{environment['HOROVOD_LOCAL_RANK']}"
        line.sendall(f"POST /join/{who} HTTP/1.0\r\n\r\n".encode())
        place = json.loads(_wait_for_answer(line))
    except (OSError, ValueError, RecursionError) as error:
        print(f"could not join the others: {error or 'the rendezvous has ended'}", flush=True)
        return _TEMPORARY
    # No timeout: nothing is ever written to it, and that must not close it.
    line.settimeout(None)
    line.set_inheritable(True)
    try:
        os.execvpe(words[0], words, {**_PATIENCE, **environment, **place})
    except OSError as error:
        print(f"`{words[0]}` cannot be started: {error.strerror}", flush=True)
        return _NOT_THERE


def _wait_for_answer(line: socket.socket) -> str:
    """Waits for one line of JSON. ValueError: something else came, or the connection was closed."""
    found = b""
    while not found.endswith(b"\n"):
        if not select.select([line], [], [], _SAY_EVERY)[0]:
            print("waiting for the others: at first until all are there, later until they commit", flush=True)
            continue
        data = line.recv(4096)
        if not data:
            raise ValueError("the rendezvous has ended" if not found else "this life of the node is over")
        found += data
    return found.decode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
