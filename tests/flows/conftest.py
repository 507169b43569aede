# SPDX-License-Identifier: Apache-2.0
"""Fixtures for flows on the local cloud."""

import pytest

from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World


@pytest.fixture(scope="module")
def world(shared_cloud: Cloud) -> World:
    """The clients of the module's cloud. A module that needs other clients overrides this fixture."""
    return World(Clients(shared_cloud))
