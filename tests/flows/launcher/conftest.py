# SPDX-License-Identifier: Apache-2.0
"""One bucket for all launchers of a module; each test's run has a folder of its own."""

import pytest

from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.nodes import Place


@pytest.fixture(scope="module")
def place(shared_cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(World(Clients(shared_cloud)), tmp_path_factory.mktemp("principal"))
