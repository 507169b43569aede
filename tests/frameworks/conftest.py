# SPDX-License-Identifier: Apache-2.0
"""One bucket for all runs of a module; each run has a folder of its own in it."""

import pytest

from localcloud.control import Cloud
from tests.cloud_fixture import Clients
from tests.flows.cloud_world import World
from tests.flows.launcher.nodes import Place


@pytest.fixture(scope="module")
def place(shared_cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(World(Clients(shared_cloud)), tmp_path_factory.mktemp("principal"))
