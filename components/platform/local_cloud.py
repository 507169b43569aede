# SPDX-License-Identifier: Apache-2.0
"""A local cloud, as what asks a platform knows it: an endpoint, and an environment that leads every client there."""

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
        """The environment variables that lead every client to this cloud."""

    def env_of_caller(self) -> Mapping[str, str]:
        """The same as whoever calls."""

    def env_for(self, profile: str) -> Mapping[str, str]: ...
