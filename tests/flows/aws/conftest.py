# SPDX-License-Identifier: Apache-2.0
"""One local AWS for each module of these tests."""

import pytest

from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients


@pytest.fixture(scope="module")
def aws(shared_cloud: Cloud) -> AwsClients:
    """Clients as the deployer."""
    return AwsClients(shared_cloud)
