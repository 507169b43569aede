# SPDX-License-Identifier: Apache-2.0
"""moto's handlers get exactly the value for which access was checked, for every operation that trainyard's clients and
the local plugin use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest

from localcloud.aws.border.requests import WrittenRequest, model_of, parse_aws_call, write_request
from localcloud.aws.calls import AwsCall, RawCall, read_raw_call
from localcloud.aws.services import SERVICES, AwsService, Wire
from localcloud.aws.simulation import MotoApps
from tests.support.aws_samples import operations, parameters_of, request_of

ROWS = list(operations())
_PROTOCOLS = {Wire.EC2: "ec2", Wire.QUERY: "query", Wire.JSON: "json", Wire.S3: "rest-xml"}


def call_of(service: AwsService, name: str, control: bool) -> tuple[Any, AwsCall, WrittenRequest, bytes]:
    model = model_of(RawCall(service, "us-east-1", name, {}, control=control))
    request, body = request_of(service, model, parameters_of(model))
    raw = read_raw_call(service, "us-east-1", request, body)
    assert (raw.operation, raw.control) == (name, control)
    return model, parse_aws_call(raw), request, body  # type: ignore[return-value]


def parsed(service: AwsService, model: Any, request: Any, body: bytes) -> Mapping[str, Any]:
    """The result of moto's own parser for a request."""
    from moto.core.parse import PROTOCOL_PARSERS
    from werkzeug.datastructures import Headers, MultiDict

    query = request.target.partition("?")[2] if hasattr(request, "target") else request.query
    text = body.decode() if service.wire in (Wire.EC2, Wire.QUERY) else query
    pairs = parse_qsl(text, keep_blank_values=True)
    template, path = model.http["requestUri"].partition("?")[0], request.path
    uri: dict[str, str] = {}
    if service.wire is Wire.S3:
        bucket, _, key = path.removeprefix("/").partition("/")
        arn = unquote(path.rpartition("/")[2])
        uri = {"Bucket": bucket, "Key": key, "resourceArn": arn} if "{" in template else {}
    asked = {
        "method": request.method, "values": MultiDict(pairs), "headers": Headers(list(request.headers.items())),
        "body": body, "url_path": path, "url_params": uri,
    }  # fmt: skip
    found: Mapping[str, Any] = PROTOCOL_PARSERS[_PROTOCOLS[service.wire]](model).parse(asked)
    return found


@pytest.mark.parametrize("prefix", sorted({service.prefix for service, _, _ in ROWS}))
def test_no_parameter_of_a_client_is_lost(prefix: str) -> None:
    rows = [row for row in ROWS if row[0].prefix == prefix]
    for service, name, control in rows:
        model, call, request, body = call_of(service, name, control)
        again = write_request(call)
        assert parsed(service, model, again, again.body) == parsed(service, model, request, body), name
        assert write_request(value_of_written(call, again)) == again, f"{name}: one spelling"
    assert len(rows) >= 1


def value_of_written(call: AwsCall, request: WrittenRequest) -> AwsCall:
    """The value of the request that moto gets. It is the same."""
    from localcloud.server.http import Request

    target = f"{request.path}?{request.query}" if request.query else request.path
    asked = Request(request.method, target, request.path, request.headers)
    value = parse_aws_call(read_raw_call(call.service, call.region, asked, request.body))
    assert (value.parameters, value.document, value.headers) == (call.parameters, call.document, call.headers)
    return value


class _HandlerError(Exception):
    """Raised by moto's handlers in these tests, with the value that they got."""

    def __init__(self, handler: Any) -> None:
        super().__init__()
        self.action = handler._get_action()
        self.json = handler.body if not hasattr(handler, "params") else ""
        self.parameters = getattr(handler, "params", {})


class _InS3Error(Exception):
    def __init__(self, handler: Any) -> None:
        super().__init__()
        self.place = (handler.request.method, handler.bucket_name or "", handler.parse_key_name())
        self.body = handler.body or b""
        self.headers = {name.lower(): text for name, text in handler.headers.items() if name.lower() not in _DOORS}
        bucket = handler._get_querystring(handler.request, handler.uri)
        self.queries = [_first(found) for found in (bucket, handler.querystring)]


# Values that the border adds itself.
_DOORS = frozenset({"host", "content-length", "authorization", "user-agent", "x-moto-account-id"})


def _first(query: Mapping[str, Any]) -> dict[str, str]:
    return {name: values[0] for name, values in query.items()}


@pytest.fixture
def handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """moto's handlers, replaced by ones that only raise what they got."""
    from moto.core.responses import BaseResponse
    from moto.s3.responses import S3Response

    def stop(self: Any, *_: Any) -> None:
        raise _HandlerError(self)

    def stop_in_s3(self: Any, *_: Any) -> None:
        raise _InS3Error(self)

    monkeypatch.setattr(BaseResponse, "call_action", stop)
    for name in ("_bucket_response", "_key_response"):
        monkeypatch.setattr(S3Response, name, stop_in_s3)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("prefix", sorted({service.prefix for service, _, _ in ROWS}))
def test_a_handler_gets_the_value_that_was_checked(prefix: str) -> None:
    apps = MotoApps("http://127.0.0.1:1")
    for service, name, control in (row for row in ROWS if row[0].prefix == prefix):
        model, call, _, _ = call_of(service, name, control)
        again = write_request(call)
        with pytest.raises((_HandlerError, _InS3Error)) as raised:
            apps.ask(call, "AKIAEXAMPLEEXAMPLE00")
        seen: Any = raised.value
        if isinstance(seen, _InS3Error):
            assert seen.place == (again.method, call.text("Bucket"), call.text("Key")), name
            assert (seen.body, seen.headers) == (again.body, again.headers), name
            query = dict(parse_qsl(again.query, keep_blank_values=True))
            # Without a query, moto reads parameters from headers.
            assert seen.queries == [query, query] if query else seen.queries[0] == {}, name
        elif service.wire is Wire.JSON:
            assert (seen.action, json.loads(seen.json)) == (name, call.parameters)
        else:
            assert seen.action == name
            assert seen.parameters == parsed(service, model, again, again.body), name


def test_an_operation_that_aws_lacks_has_no_value() -> None:
    from localcloud.aws.aws_errors import RefusalError

    for service in SERVICES.values():
        if service.wire is not Wire.S3:
            with pytest.raises(RefusalError):
                model_of(RawCall(service, "us-east-1", "DropEverything", {}))
