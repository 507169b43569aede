# SPDX-License-Identifier: Apache-2.0
"""Botocore's models of operations, which moto uses too. Loading that of a large service takes a second, once."""

from __future__ import annotations

from functools import cache
from typing import Any

from localcloud.aws.calls import RawCall
from localcloud.aws.errors import Reason, RefusalError

# Services whose names in moto and botocore differ.
_NAMES = {"servicequotas": "service-quotas"}


def of_call(call: RawCall) -> Any:
    """The model of a call's operation. Refuses an operation that AWS does not have."""
    model = of_service("s3control" if call.control else call.service.backend)
    if call.operation not in _operations(model.service_name):
        raise RefusalError(Reason.UNKNOWN_OPERATION, f"The service has no operation {call.operation[:60]!a}")
    return model.operation_model(call.operation)


@cache
def of_service(backend: str) -> Any:
    from moto.core.utils import get_service_model

    return get_service_model(_NAMES.get(backend, backend))


@cache
def _operations(name: str) -> frozenset[str]:
    from moto.core.utils import get_service_model

    return frozenset(get_service_model(name).operation_names)
