# SPDX-License-Identifier: Apache-2.0
"""Runs a server in a thread until the block ends."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SECONDS_UNTIL_IT_HEARS_OF_ITS_END = 0.02


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[str]:
    """Yields its address, such as `127.0.0.1:40001`. After the block, its thread has ended and its socket is closed."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(_SECONDS_UNTIL_IT_HEARS_OF_ITS_END,))
        thread.start()
        try:
            host, port = server.server_address[:2]
            yield f"{host!s}:{port}"
        finally:
            server.shutdown()
            thread.join()
