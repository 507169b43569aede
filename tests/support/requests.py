# SPDX-License-Identifier: Apache-2.0
"""Requests in the form in which the local cloud's server passes them on."""

from localcloud.server.http import Request


def request(method: str, target: str, headers: dict[str, str] | None = None) -> Request:
    return Request(method, target, target.partition("?")[0], headers or {})
