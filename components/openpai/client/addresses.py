# SPDX-License-Identifier: Apache-2.0
"""Addresses of web portals, as people write them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

SCHEMES = ("https", "http")
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True)
class Portal:
    """Equal for two ways to write one address."""

    # Scheme, name and port.
    host: tuple[str, str, int | None]
    path: str = ""
    written: str = field(default="", compare=False)

    @classmethod
    def of(cls, address: str) -> Portal:
        """An address below a portal has the portal's host. Addresses that are none are each like themselves only."""
        try:
            parts = urlsplit(address)
            port = parts.port
        except ValueError:
            return cls(("", address, None))
        host = parts.scheme, parts.hostname or "", port or _PORTS.get(parts.scheme)
        return cls(host, parts.path.rstrip("/"), f"{parts.scheme}://{parts.netloc}")

    def within(self, address: str) -> str:
        """A path is one below the portal, unless it has the portal's own path already."""
        below = address.startswith("/") and not address.startswith("//")
        if not below or f"{address}/".startswith(f"{self.path}/"):
            return urljoin(f"{self.written}{self.path}/", address)
        return f"{self.written}{self.path}{address}"


def address_problem(address: str) -> str | None:
    """Why nothing can be at such an address. None if something can."""
    if not address.isascii() or any(letter <= " " for letter in address):
        return "it has spaces, or letters that an address does not have (write a name's `xn--` form)"
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in SCHEMES:
        return "it does not begin with https:// or http://"
    if not parts.hostname or port == 0:
        return "it names no host, or no port"
    if "@" in parts.netloc:
        return "it has a user's name, and a token says who calls"
    if parts.query or parts.fragment:
        return "nothing may follow its path"
    return None
