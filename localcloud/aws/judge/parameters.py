# SPDX-License-Identifier: Apache-2.0
"""The parameters that an operation has. Others are no part of the call: moto ignores them, and so does the judge. Else
a call about somebody's resource could name one of the caller's, to be judged by that."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from localcloud.aws.calls import AwsCall
from localcloud.aws.services import Wire

# Where botocore's name of a service is not moto's.
_MODELS = {"servicequotas": "service-quotas"}


def of_operation(call: AwsCall) -> AwsCall:
    """The call without parameters that its operation lacks."""
    known = _names(call.service.backend, call.operation, call.service.wire)
    kept = {name: value for name, value in call.parameters.items() if name.partition(".")[0] in known}
    return replace(call, parameters=kept)


@cache
def _names(service: str, operation: str, wire: Wire) -> frozenset[str]:
    """The names on the wire, each to its first dot. None for an operation that AWS does not have."""
    from moto.core.utils import get_service_model

    model = get_service_model(_MODELS.get(service, service))
    if operation not in model.operation_names:
        return frozenset()
    shape = model.operation_model(operation).input_shape
    members = shape.members.items() if shape is not None else ()
    return frozenset(_on_wire(name, member.serialization, wire) for name, member in members)


def _on_wire(name: str, serialization: dict[str, str], wire: Wire) -> str:
    own = serialization.get("name", name)
    if wire is Wire.EC2:
        return serialization.get("queryName") or own[:1].upper() + own[1:]
    return own
