# SPDX-License-Identifier: Apache-2.0
"""Parses a request into its value, by botocore's model of its operation, and writes moto's request from the value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from localcloud.aws.aws_errors import Reason, RefusalError
from localcloud.aws.border import s3_values, xml_body
from localcloud.aws.border.parameters import read_flat_parameters, read_json_parameters
from localcloud.aws.calls import AwsCall, RawCall
from localcloud.aws.services import Wire

# Services whose names in moto and botocore differ.
_BOTOCORE_NAMES = {"servicequotas": "service-quotas"}
_FORM_TYPE = "application/x-www-form-urlencoded"
# moto searches any body for query parameters, also JSON. So `&` and `=` are escaped in JSON.
_ESCAPES = {"&": "\\u0026", "=": "\\u003d"}


def parse_aws_call(raw: RawCall) -> AwsCall:
    """The value of a request. Refuses a request that does not fit the model of its operation."""
    model = model_of(raw)
    wire = raw.service.wire
    if wire is Wire.S3:
        return s3_values.read_s3_call(raw, model)
    if wire is Wire.JSON:
        if raw.headers["x-amz-target"] != amz_target(raw):
            raise RefusalError(Reason.UNKNOWN_OPERATION, "X-Amz-Target names an operation of another service")
        parameters = read_json_parameters(raw.parameters, model.input_shape)
    else:
        parameters = read_flat_parameters(raw.parameters, model.input_shape, wire)
    return AwsCall(raw.service, raw.region, raw.operation, parameters)


def amz_target(call: RawCall) -> str:
    """The value of `X-Amz-Target` for a call of a JSON service."""
    return f"{service_model(call.service.backend).metadata['targetPrefix']}.{call.operation}"


def model_of(call: RawCall) -> Any:
    """botocore's model of a call's operation. Refuses an operation that AWS does not have."""
    model = service_model("s3control" if call.control else call.service.backend)
    if call.operation not in model.operation_names:
        raise RefusalError(Reason.UNKNOWN_OPERATION, f"The service has no operation {call.operation[:60]!a}")
    return model.operation_model(call.operation)


@cache
def service_model(backend: str) -> Any:
    from moto.core.utils import get_service_model

    return get_service_model(_BOTOCORE_NAMES.get(backend, backend))


@dataclass(frozen=True)
class WrittenRequest:
    """The request for moto. Header names are in lower case, `path` and `query` are percent-encoded."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


def write_request(call: AwsCall) -> WrittenRequest:
    """The request for moto, from nothing but the value of the call."""
    if call.service.wire is Wire.S3:
        model = model_of(call)
        template, _, fixed = model.http["requestUri"].partition("?")
        parts = {"{Bucket}": call.text("Bucket"), "{Key+}": call.text("Key"),
                 "{resourceArn+}": f"arn:aws:s3:::{call.text('Bucket')}"}  # fmt: skip
        for name, value in parts.items():
            template = template.replace(name, quote(value, safe="/" if name == "{Key+}" else "-._~"))
        query = [*filter(None, [fixed])]
        for name, _ in s3_values.members_at(model, "querystring"):
            given = call.parameters.get(name)
            values = given if isinstance(given, list) else [] if given is None else [given]
            query += [f"{quote(name, safe='')}={quote(each, safe='')}" for each in values]
        headers = dict(call.headers)
        if call.text("Source"):
            version = call.text("SourceVersion")
            source = quote(call.text("Source"), safe="/")
            headers["x-amz-copy-source"] = f"{source}?versionId={quote(version, safe='')}" if version else source
        body = call.body
        if call.document is not None:
            name, _, payload = s3_values.payload_shape(model.input_shape)
            body = xml_body.write_xml(call.document, name, payload)
        return WrittenRequest(model.http["method"], template, "&".join(query), headers, body)
    if call.service.wire is Wire.JSON:
        text = json.dumps(call.parameters)
        for sign, spelled in _ESCAPES.items():
            text = text.replace(sign, spelled)
        content_type = f"application/x-amz-json-{call.service.json_version}"
        headers = {"content-type": content_type, "x-amz-target": amz_target(call)}
        return WrittenRequest("POST", "/", "", headers, text.encode())
    version = service_model(call.service.backend).api_version
    pairs = {"Action": call.operation, "Version": version, **call.parameters}
    return WrittenRequest("POST", "/", "", {"content-type": _FORM_TYPE}, urlencode(pairs).encode())
