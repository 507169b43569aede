# SPDX-License-Identifier: Apache-2.0
"""The interface of a local cloud for platforms: its endpoint, and the environment for clients that use it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class LocalCloud(Protocol):
    """`localcloud.control.Cloud` is one. `compartment` is meant for stacks; `tenancy` is the root compartment."""

    @property
    def home(self) -> Path: ...
    @property
    def endpoint(self) -> str: ...
    @property
    def tenancy(self) -> str: ...
    @property
    def compartment(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def config_file(self) -> Path: ...
    @property
    def env(self) -> Mapping[str, str]:
        """The environment variables with which every client uses this cloud."""

    def env_of_caller(self) -> Mapping[str, str]:
        """The same, with the credentials of the account that runs the command."""

    def env_for(self, profile: str) -> Mapping[str, str]: ...
