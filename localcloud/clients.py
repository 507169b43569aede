# SPDX-License-Identifier: Apache-2.0
"""How clients of each platform come to a local cloud: `CLIENTS` in `clients.py` of the platform's local home; and the
way to these homes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from catalog.platforms import platform_folder, platforms

if TYPE_CHECKING:
    from localcloud.control import Cloud


class PlatformClients(ABC):
    @abstractmethod
    def variables(self, cloud: Cloud, profile: str) -> Mapping[str, str]:
        """The environment variables that lead the platform's clients to this cloud, as this user."""

    @abstractmethod
    def profile_of_caller(self, cloud: Cloud, environment: Mapping[str, str]) -> str | None:
        """The profile in the caller's environment, if that leads to this cloud."""

    @abstractmethod
    def place(self, cloud: Cloud) -> str:
        """Where a user finds the platform's resources, for `trainyard cloud status`."""

    def facts(self, cloud: Cloud) -> Mapping[str, str]:
        """The same for programs."""
        return {}


def modules_of_local_homes(name: str) -> Iterator[ModuleType]:
    """The modules of this name in local homes of platforms, in the order of the list."""
    for platform in platforms():
        home = f"localcloud.{platform_folder(platform)}"
        if find_spec(home) and find_spec(f"{home}.{name}"):
            yield import_module(f"{home}.{name}")


def platform_clients() -> Iterator[PlatformClients]:
    """Of every platform that has a local cloud."""
    for module in modules_of_local_homes("clients"):
        clients = module.CLIENTS
        if not isinstance(clients, PlatformClients):
            raise TypeError(f"CLIENTS of {module.__name__} is not a PlatformClients")
        yield clients
