# SPDX-License-Identifier: Apache-2.0
"""Only a loopback interface, on which this cloud answers: the network of a run that names no subnet, and of all runs in
one network where its rules cannot be enforced."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from socket import socket
from urllib.parse import urlsplit

from localcloud.hosts.site import Site


@dataclass
class LoopbackSite:
    """All nodes on it share the site's namespace. Each has an address of its loopback."""

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
