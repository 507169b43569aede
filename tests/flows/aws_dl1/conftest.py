# SPDX-License-Identifier: Apache-2.0
"""moto's AWS services, shared by all tests of this folder. Each test has its own bucket."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.support.aws_machines import client, moto
from tests.support.programs import make_ssh_key

_numbers = itertools.count()


@pytest.fixture(scope="session")
def aws() -> Iterator[str]:
    with moto() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(aws: str) -> str:
    name = f"runs-{next(_numbers)}"
    client(aws, "s3").create_bucket(Bucket=name)
    return name


@pytest.fixture(scope="session")
def private_key(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("key") / "id_rsa"
    return make_ssh_key(file)
