# SPDX-License-Identifier: Apache-2.0
"""moto's state of the account. moto is imported at the first use, because that takes a second."""

from __future__ import annotations

from typing import Any

from localcloud.aws.account import ACCOUNT


def moto_backends(service: str) -> Any:
    """moto's backends of a service, by region."""
    from moto.backends import get_backend

    return get_backend(service)[ACCOUNT]


def moto_backend(service: str, region: str = "aws") -> Any:
    """moto's backend of a service in a region. `aws` stands for all regions, for services that have one backend."""
    return moto_backends(service)[region]
