# SPDX-License-Identifier: Apache-2.0
"""Calls of AWS with every parameter that their models have, written by botocore as its clients write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from botocore.serialize import create_serializer

from components.aws.types import SERVED_TYPES
from components.aws.types.functions import FUNCTIONS
from components.aws.types.provider_calls import aws_function_calls, aws_type_calls
from localcloud.aws import s3_operations
from localcloud.aws.services import SERVICES, AwsService, Wire
from localcloud.server.http import Request

_MOST_DEPTH = 9
# Characters that a parser of forms, queries, XML or JSON could misread.
_TEXT = 'a&b=c d%41+é;"<x>\\ü\r\n\t&amp;Action=x'
_PLAIN = "a-b"
# Operations that the launcher, `trainyard data` and `trainyard run` call, in addition to those of the provider.
_OWN = {
    "logs": ("CreateLogStream", "PutLogEvents", "FilterLogEvents", "DescribeLogStreams"),
    "ecr": ("GetAuthorizationToken",), "secretsmanager": ("GetSecretValue", "PutSecretValue"),
    "ec2": ("RunInstances", "TerminateInstances", "StartInstances", "StopInstances", "GetConsoleOutput"),
    "ssm": ("SendCommand", "GetCommandInvocation", "PutParameter", "GetParameter"),
    "sts": ("GetCallerIdentity", "AssumeRole"), "servicequotas": ("GetServiceQuota",),
}  # fmt: skip
_OF_CONTROL = ("ListTagsForResource", "TagResource", "UntagResource")


def operations() -> Iterator[tuple[AwsService, str, bool]]:
    """Yields service, operation, and whether it is an operation of S3 Control."""
    seen = {(prefix, name) for prefix, names in _OWN.items() for name in names} | set(_of_provider())
    seen |= {("s3", name) for name in s3_operations.s3_operation_names()}
    by_prefix = {service.prefix: service for service in SERVICES.values()}
    for prefix, name in sorted(seen):
        if name in _OF_CONTROL and prefix in ("s3", "s3control"):
            yield by_prefix["s3"], name, True
        elif prefix in by_prefix or prefix in SERVICES:
            yield by_prefix.get(prefix) or SERVICES[prefix], name, False


def _of_provider() -> Iterator[tuple[str, str]]:
    for token, row in SERVED_TYPES.items():
        for name in (*aws_type_calls(token).every_call(), *row.provider.stand_in.split()):
            yield row.service, name
    for token, function in FUNCTIONS.items():
        for name in aws_function_calls(token).every_call():
            yield function.service, name


def sample(shape: Any, depth: int = 0) -> Any:
    """A sample value of a shape, with all of its members."""
    kind = shape.type_name
    if kind == "structure":
        named = shape.members.items() if depth < _MOST_DEPTH else ()
        return {name: sample(member, depth + 1) for name, member in named}
    if kind == "list":
        return [sample(shape.member, depth + 1)] * 2
    if kind == "map" and "location" in shape.serialization:
        return {_PLAIN: _PLAIN}
    if kind == "map":
        return {sample(shape.key, depth + 1): sample(shape.value, depth + 1)}
    if kind == "string":
        if shape.enum:
            return shape.enum[0]
        return _PLAIN if "location" in shape.serialization else _TEXT
    simple: Mapping[str, Any] = {
        "integer": 7, "long": 7, "float": 1.5, "double": 1.5, "boolean": True, "blob": b"\x00&a=b",
        "timestamp": datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC),
    }  # fmt: skip
    return simple[kind]


def parameters_of(model: Any) -> dict[str, Any]:
    """A value for every parameter of an operation. Those in the path, and digests, are valid ones."""
    shape = model.input_shape
    if shape is None:
        return {}
    named: dict[str, Any] = sample(shape)
    fixed = {"Bucket": "team", "Key": "a b/c+d&é=%2F", "CopySource": "team/a%20b?versionId=7",
             "AccountId": "123456789012", "ResourceArn": "arn:aws:s3:::team", "Range": "bytes=0-5"}  # fmt: skip
    if model.service_model.service_name in ("s3", "s3control"):
        named |= {name: value for name, value in fixed.items() if name in named}
    return {
        name: value for name, value in named.items()
        if not name.startswith(("Checksum", "ContentMD5", "ContentLength", "ContentEncoding", "ContentType"))
    }  # fmt: skip


def request_of(service: AwsService, model: Any, parameters: Mapping[str, Any]) -> tuple[Request, bytes]:
    """The request that botocore's client would send."""
    protocol = {Wire.EC2: "ec2", Wire.QUERY: "query", Wire.JSON: "json", Wire.S3: "rest-xml"}[service.wire]
    made = create_serializer(protocol, include_validation=False).serialize_to_request(dict(parameters), model)
    body, headers = made["body"], {name.lower(): str(value) for name, value in made["headers"].items()}
    if isinstance(body, Mapping):
        content = urlencode(body).encode()
        headers["content-type"] = "application/x-www-form-urlencoded; charset=utf-8"
    else:
        content = body if isinstance(body, bytes) else str(body or "").encode()
    query = made["query_string"]
    pairs = query.items() if isinstance(query, Mapping) else query
    rows = [(name, one) for name, value in pairs for one in (value if isinstance(value, list) else [value])]
    text = "&".join(f"{quote(name, safe='')}={quote(str(one), safe='')}" for name, one in rows)
    path, _, fixed = made["url_path"].partition("?")
    target = path + ("?" if fixed or text else "") + "&".join(filter(None, (fixed, text)))
    return Request(made["method"], target, path, headers), content
