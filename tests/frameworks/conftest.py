# SPDX-License-Identifier: Apache-2.0
"""One local cloud for all runs of a module."""

import pytest

from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.field import Field


@pytest.fixture(scope="module")
def field(shared_cloud: Cloud) -> Field:
    return Field(World(Clients(shared_cloud)))
