# SPDX-License-Identifier: Apache-2.0
"""Parses a request into its value, by botocore's model of its operation."""

from __future__ import annotations

from localcloud.aws.border import flat, json_values, models, s3_values
from localcloud.aws.calls import AwsCall, RawCall
from localcloud.aws.errors import Reason, RefusalError
from localcloud.aws.services import Wire


def value_of(raw: RawCall) -> AwsCall:
    """The value of a request, which is judged and then carried out. Refuses a request that the model does not fit."""
    model = models.of_call(raw)
    wire = raw.service.wire
    if wire is Wire.S3:
        return s3_values.read(raw, model)
    if wire is Wire.JSON:
        if raw.headers["x-amz-target"] != target_of(raw):
            raise RefusalError(Reason.UNKNOWN_OPERATION, "X-Amz-Target names an operation of another service")
        parameters = json_values.read(raw.parameters, model.input_shape)
    else:
        parameters = flat.read(raw.parameters, model.input_shape, wire)
    return AwsCall(raw.service, raw.region, raw.operation, parameters)


def target_of(call: RawCall) -> str:
    """The header `X-Amz-Target` of a JSON service for this operation."""
    return f"{models.of_service(call.service.backend).metadata['targetPrefix']}.{call.operation}"
