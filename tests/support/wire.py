# SPDX-License-Identifier: Apache-2.0
"""Sends requests that no client would send: repeated headers, in any case, and two headers for a body's length."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Sequence
from urllib.parse import urlsplit

from tests.support.seams import Asked
from tests.support.waiting import LONGEST_SECONDS


class Wire:
    """One connection, which is opened again after the server has closed it."""

    def __init__(self, endpoint: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=LONGEST_SECONDS)

    def close(self) -> None:
        self._connection.close()

    def send(self, asked: Asked, headers: Sequence[tuple[str, str]]) -> tuple[int, bytes]:
        """The status and the body of the response. The status is 0 if the connection ended without a response."""
        content = asked.content
        told = {name.lower() for name, _ in headers}
        try:
            self._connection.putrequest(asked.method, asked.target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                self._connection.putheader(name, value)
            if asked.is_chunked:
                self._connection.putheader("transfer-encoding", "chunked")
            elif "content-length" not in told:
                self._connection.putheader("content-length", str(len(content)))
            with contextlib.suppress(ConnectionError):  # closed early; its response is still there
                self._connection.endheaders(
                    content if content or asked.is_chunked else None, encode_chunked=asked.is_chunked
                )
            response = self._connection.getresponse()
            answer = response.status, response.read()
            if response.will_close or asked.method == "HEAD":
                self._connection.close()
            return answer
        except (http.client.HTTPException, ConnectionError):
            self._connection.close()
            return 0, b""
