# SPDX-License-Identifier: Apache-2.0
"""A server that answers calls of a cloud's own clients from a recording, and the recording of a local cloud's answers.

A call is known by its method, its path with the query, and its body. Signatures are not checked: what a cloud refuses
is not the subject here.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def key_of(method: str, target: str, body: bytes, service: str = "") -> str:
    """`service`: the operation of a JSON protocol, which only a header names."""
    shown = body.decode("utf-8", "replace") if len(body) < 200 else hashlib.sha256(body).hexdigest()
    return " ".join(filter(None, (method, target, service, shown)))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answer: Callable[[_Handler, bytes], Mapping[str, Any]]

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = type(self).answer(self, body)
        content = (found["text"] if "text" in found else json.dumps(found["json"])).encode()
        self.send_response(found["status"])
        for name, value in found["headers"].items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815 (the library's names)

    def log_message(self, *words: Any) -> None:
        """Prints nothing."""


@contextmanager
def serving(answer: Callable[[Any, bytes], Mapping[str, Any]]) -> Iterator[int]:
    """A server on loopback; yields its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"answer": staticmethod(answer)}))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
