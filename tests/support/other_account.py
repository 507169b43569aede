# SPDX-License-Identifier: Apache-2.0
"""Another account of this machine, which connects to ports on loopback. Only root can switch to another account."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# The number of an account that does not exist on this machine.
STRANGER = 64_321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another account")

# A relay, through which a gRPC client connects, runs under the other account: that account may not be able to read
# Python's libraries, which a client needs. The relay leaves root's account before it opens its first socket.
_RELAY = """
import os, socket, sys, threading
from contextlib import suppress

socket.getaddrinfo("127.0.0.1", 0)  # imports what a stranger may not read
account, target, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
os.setgroups([])
os.setgid(account)
os.setuid(account)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)

def pump(source, sink):
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)

while True:
    here, _ = listener.accept()
    there = socket.create_connection((target, port))
    for pair in ((here, there), (there, here)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
"""


@contextmanager
def strangers_port(port: int, target: str = "127.0.0.1") -> Iterator[int]:
    """A relay's port. The other account forwards its connections to `port`. `target`: the loopback address that it
    uses."""
    command = [sys.executable, "-I", "-S", "-c", _RELAY, str(STRANGER), target, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as relay:
        try:
            assert relay.stdout
            yield int(relay.stdout.readline())
        finally:
            relay.kill()
