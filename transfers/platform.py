# SPDX-License-Identifier: Apache-2.0
"""What a platform provides so that files can be moved to and from its store; each platform's folder answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from catalog.platforms import import_platform, platform_in, platforms_in
from components.platform.calls import Tell
from components.platform.file_errors import TransferError
from components.platform.files import Store
from schemas.model import Stack

if TYPE_CHECKING:
    from localcloud.control import Cloud


@dataclass(frozen=True)
class StoreRequest:
    """As whom, and for what.

    `purpose`: list, get or put. `stack` and `config` come from the stack's file, None and empty where there is none.
    `cloud`: on the local cloud. `profile`: the caller's, else the one that every client would take.
    """

    purpose: str
    stack: Stack | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    cloud: Cloud | None = None
    profile: str | None = None
    tell: Tell = lambda line: None


class StoreOpener(Protocol):
    """Opens stores as one caller."""

    def bucket(self, name: str) -> Store: ...

    def folder(self, address: str) -> tuple[Store, str]:
        """The store that a folder's address names, and the folder's name in it."""


def store_opener(request: StoreRequest) -> StoreOpener:
    """Raises TransferError where the platform has no store that trainyard knows."""
    name = platform_in(request.config)
    if name not in platforms_in("client.files"):
        raise TransferError(
            f"the stack runs on {name}: trainyard does not know where runs keep files there, so it cannot move any"
        )
    made: StoreOpener = import_platform(name, "client.files").make(request)
    return made
