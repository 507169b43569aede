# SPDX-License-Identifier: Apache-2.0
"""The host and port from which git clones, which the network has to let through."""

from __future__ import annotations

import re

PORTS = {"https": 443, "http": 80, "ssh": 22, "git": 9418}
_URL = re.compile(r"(?:(?P<scheme>[a-z+]+)://)?(?:[^/@]*@)?(?P<host>[^/:]+)(?::(?P<port>\d+)(?=/|$))?")


def host_of(url: str) -> str:
    """The host that git connects to. Empty if the text is not an address."""
    matched = _URL.match(url)
    return matched["host"] if matched else ""


def port_of(url: str) -> int:
    """The port git connects to; `git@host:path` goes by SSH."""
    matched = _URL.match(url)
    port = int(matched["port"]) if matched and matched["scheme"] and matched["port"] else 0
    usual = PORTS.get((matched["scheme"] or "ssh").removeprefix("git+"), PORTS["https"]) if matched else PORTS["https"]
    return port if 0 < port < 65536 else usual
