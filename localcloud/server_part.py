# SPDX-License-Identifier: Apache-2.0
"""A platform's part of the running server: `SERVER_PART`, a class in `server_part.py` of the platform's local home."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from localcloud.clients import modules_of_local_homes
from localcloud.hosts.fabric import Fabric
from localcloud.server.cloud import ServedCloud
from localcloud.server.http import HttpApi

# Makes the networks of a platform's nodes. Its argument: the addresses of the cloud's services inside of them.
MakeFabric = Callable[[Sequence[str]], Fabric]


class UnusableError(Exception):
    """This cloud cannot start. The text is for its user."""


class ServerPart(ABC):
    """`facts`: the part's entries in the cloud's marker."""

    api: HttpApi
    facts: Mapping[str, str]

    @abstractmethod
    def __init__(self, cloud: ServedCloud) -> None:
        """Makes the API. The cloud has its endpoint and its faults already."""

    @abstractmethod
    async def start_hosts(self, make_fabric: MakeFabric) -> None:
        """Makes the hosts, and resumes what ran when the cloud ended."""

    def upkeep(self) -> Sequence[Coroutine[Any, Any, None]]:
        """Tasks of the running server. They are cancelled at its end."""
        return ()

    @abstractmethod
    async def stop_hosts(self) -> None: ...

    @abstractmethod
    async def close(self) -> None:
        """Called when the hosts of all parts have stopped."""


class MainServerPart(ServerPart):
    """The part of the first platform of the list. Its state file is the one that all parts share, and its API answers
    the requests that no other takes."""

    @staticmethod
    @abstractmethod
    def open_cloud(home: Path) -> ServedCloud:
        """Opens the state. Raises UnusableError if it cannot be used."""


def server_parts() -> Iterator[type[ServerPart]]:
    """Of every platform that has a local cloud, in the order of the list."""
    for module in modules_of_local_homes("server_part"):
        part = module.SERVER_PART
        if not issubclass(part, ServerPart):
            raise TypeError(f"SERVER_PART of {module.__name__} is not a ServerPart")
        yield part
