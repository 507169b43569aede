# SPDX-License-Identifier: Apache-2.0
"""Writes the request for moto, from nothing but the value that was judged."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from localcloud.aws.border import models, s3_values, xml_body
from localcloud.aws.border.read import target_of
from localcloud.aws.calls import AwsCall
from localcloud.aws.services import Wire

_FORM = "application/x-www-form-urlencoded"
# moto searches for query parameters in any body, also in JSON. So these signs of a query are escaped there.
_SIGNS = {"&": "\\u0026", "=": "\\u003d"}


@dataclass(frozen=True)
class WrittenRequest:
    """A call in canonical form. `headers` are in lower case, `path` and `query` percent-encoded."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


def written(call: AwsCall) -> WrittenRequest:
    """The request of a call."""
    if call.service.wire is Wire.S3:
        return _s3(call)
    if call.service.wire is Wire.JSON:
        headers = {"content-type": f"application/x-amz-json-{call.service.json_version}"}
        return WrittenRequest("POST", "/", "", {**headers, "x-amz-target": target_of(call)}, _json(call.parameters))
    version = models.of_service(call.service.backend).api_version
    pairs = {"Action": call.operation, "Version": version, **call.parameters}
    return WrittenRequest("POST", "/", "", {"content-type": _FORM}, urlencode(pairs).encode())


def _json(parameters: Mapping[str, Any]) -> bytes:
    text = json.dumps(parameters)
    for sign, spelled in _SIGNS.items():
        text = text.replace(sign, spelled)
    return text.encode()


def _s3(call: AwsCall) -> WrittenRequest:
    model = models.of_call(call)
    template, _, fixed = model.http["requestUri"].partition("?")
    parts = {"{Bucket}": call.text("Bucket"), "{Key+}": call.text("Key"),
             "{resourceArn+}": f"arn:aws:s3:::{call.text('Bucket')}"}  # fmt: skip
    for name, value in parts.items():
        template = template.replace(name, quote(value, safe="/" if name == "{Key+}" else "-._~"))
    pairs = [*filter(None, [fixed]), *_query(call, model)]
    headers = dict(call.headers)
    if call.text("Source"):
        version = call.text("SourceVersion")
        headers["x-amz-copy-source"] = quote(call.text("Source"), safe="/") + (
            f"?versionId={quote(version, safe='')}" if version else ""
        )
    return WrittenRequest(model.http["method"], template, "&".join(pairs), headers, _body(call, model))


def _query(call: AwsCall, model: Any) -> Iterator[str]:
    for name, _ in s3_values.members(model, "querystring"):
        value = call.parameters.get(name)
        for one in value if isinstance(value, list) else [value] if value is not None else []:
            yield f"{quote(name, safe='')}={quote(one, safe='')}"


def _body(call: AwsCall, model: Any) -> bytes:
    if call.document is None:
        return call.body
    name, _, payload = s3_values.payload_of(model.input_shape)
    return xml_body.written(call.document, name, payload)
