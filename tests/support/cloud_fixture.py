# SPDX-License-Identifier: Apache-2.0
"""Local clouds for tests: `cloud` is a test's own, `shared_cloud` one for the tests of a module."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from localcloud import control, files
from localcloud.control import Cloud
from tests.support.waiting import LONGEST_SECONDS, eventually


@contextmanager
def local_cloud(home: Path) -> Iterator[Cloud]:
    try:
        yield control.start_cloud(home)
    finally:
        control.stop_cloud(home)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with local_cloud(tmp_path / "cloud") as started:
        yield started


@pytest.fixture(scope="module")
def shared_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with local_cloud(tmp_path_factory.mktemp("shared") / "cloud") as started:
        yield started


def kill(cloud: Cloud) -> None:
    """Ends the server as a crash would; its folder stays as it is."""
    started = files.process_start_time(cloud.pid)
    os.kill(cloud.pid, signal.SIGKILL)
    eventually(lambda: files.is_same_process(cloud.pid, started), lambda alive: not alive)


@dataclass(frozen=True)
class Clients:
    """The official SDK's clients, pointed at a local cloud."""

    cloud: Cloud
    profile: str = "deployer"

    def _client(self, package: str, name: str) -> Any:
        import importlib

        import oci

        config = oci.config.from_file(str(self.cloud.config_file), self.profile)
        client = getattr(importlib.import_module(f"oci.{package}"), name)
        return client(
            config, service_endpoint=self.cloud.endpoint, retry_strategy=oci.retry.NoneRetryStrategy(),
            timeout=LONGEST_SECONDS,
        )  # fmt: skip

    @cached_property
    def identity(self) -> Any:
        return self._client("identity", "IdentityClient")

    @cached_property
    def network(self) -> Any:
        return self._client("core", "VirtualNetworkClient")

    @cached_property
    def storage(self) -> Any:
        return self._client("object_storage", "ObjectStorageClient")

    @cached_property
    def artifacts(self) -> Any:
        return self._client("artifacts", "ArtifactsClient")

    @cached_property
    def logging(self) -> Any:
        return self._client("logging", "LoggingManagementClient")

    @cached_property
    def log_ingestion(self) -> Any:
        return self._client("loggingingestion", "LoggingClient")

    @cached_property
    def log_search(self) -> Any:
        return self._client("loggingsearch", "LogSearchClient")

    @cached_property
    def monitoring(self) -> Any:
        return self._client("monitoring", "MonitoringClient")

    @cached_property
    def vaults(self) -> Any:
        return self._client("vault", "VaultsClient")

    @cached_property
    def data_science(self) -> Any:
        return self._client("data_science", "DataScienceClient")
