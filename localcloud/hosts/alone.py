# SPDX-License-Identifier: Apache-2.0
"""The network of a run that names no subnet: only a loopback interface, on which this cloud answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from socket import socket
from urllib.parse import urlsplit

from localcloud.hosts.site import Site


@dataclass
class LoopbackSite:
    """All nodes of one run share the site's namespace. Each has an address of its loopback."""

    site: Site
    _ending: Callable[[], None]

    @classmethod
    async def start(cls, endpoint: str, serve: Callable[[socket], Awaitable[Callable[[], None]]]) -> LoopbackSite:
        """Starts a site in which this cloud answers at the same address as outside."""
        address = urlsplit(endpoint)
        site = Site()
        try:
            await asyncio.to_thread(site.prepare)
            listener = await asyncio.to_thread(site.listen, str(address.hostname), address.port or 80)
            return cls(site, await serve(listener))
        except BaseException:
            site.close()
            raise

    def close(self) -> None:
        self._ending()
        self.site.close()
