# SPDX-License-Identifier: Apache-2.0
"""Every type of the local cloud's `aws` plugin, through the provider protocol, against the local cloud."""

from collections.abc import Iterator

import pytest

from localcloud.control import Cloud
from localcloud.plugin.aws.types import ROWS
from tests.support.aws_plugin_world import CASES, aws_world
from tests.support.plugin_world import World, live


@pytest.fixture(scope="module")
def world(shared_cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with aws_world(shared_cloud, tmp_path_factory.mktemp("world")) as made:
        yield made


def test_every_row_has_a_case() -> None:
    assert set(CASES) == set(ROWS)


@pytest.mark.parametrize("token", CASES)
def test_a_life(world: World, token: str) -> None:
    live(world, token)
