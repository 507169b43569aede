# SPDX-License-Identifier: Apache-2.0
"""One AWS request as a call: its service, its operation, and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from localcloud.api.http import Request
from localcloud.api.values import read_json
from localcloud.aws import s3_operations
from localcloud.aws.errors import Reason, RefusalError
from localcloud.aws.services import AwsService, Wire

_MOST_PARAMETERS = 5000
_READS = ("Describe", "List", "Get", "Head", "Search", "Filter", "BatchGet", "Select", "Lookup", "Simulate", "Decode")


@dataclass(frozen=True)
class AwsCall:
    """`parameters` are those of the wire: flat for EC2 and query services, JSON for JSON services, and for S3 the
    bucket, the key and the query."""

    service: AwsService
    region: str
    operation: str
    parameters: Mapping[str, Any]
    request: Request
    body: bytes = field(repr=False, default=b"")

    @property
    def name(self) -> str:
        """Such as `ec2.RunInstances`: the name that faults and the log use."""
        return f"{self.service.prefix}.{self.operation}"

    @property
    def backend(self) -> str:
        """The name of what carries it out in moto."""
        control = self.service.wire is Wire.S3 and s3_operations.is_control(self.request)
        return "s3control" if control else self.service.backend

    @property
    def writes(self) -> bool:
        # These make credentials or tokens, which must be valid after a restart.
        makes = self.operation in ("GetSessionToken", "GetFederationToken", "GetAuthorizationToken")
        return makes or not self.operation.startswith(_READS)

    def text(self, name: str) -> str:
        """A parameter that is text, or nothing."""
        value = self.parameters.get(name)
        return value if isinstance(value, str) else ""


def read_call(service: AwsService, region: str, request: Request, body: bytes) -> AwsCall:
    """The call of a request. It is read strictly: what moto could read in another way is refused, or somebody could
    have one call judged and another one carried out."""
    if service.wire is Wire.S3:
        operation, parameters = s3_operations.identify(request)
        return AwsCall(service, region, operation, parameters, request, body)
    path, _, query = request.target.partition("?")
    if path != "/" or "content-encoding" in request.headers or "amazonaws" in query:
        raise RefusalError(Reason.MALFORMED, "The request is not one of this service")
    if service.wire is Wire.JSON:
        if query and "X-Amz-Signature=" not in query:
            raise RefusalError(Reason.MALFORMED, "The request has a query")
        operation, parameters = _json_call(request, body)
    else:
        operation, parameters = _query_call(body, query)
    return AwsCall(service, region, operation, parameters, request, body)


def _query_call(body: bytes, query: str) -> tuple[str, Mapping[str, Any]]:
    if body and query:
        raise RefusalError(Reason.MALFORMED, "Parameters must be in the body or in the query, not in both")
    try:
        pairs = parse_qsl(body.decode() or query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise RefusalError(Reason.MALFORMED, "The body is not a list of parameters") from None
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise RefusalError(Reason.MALFORMED, "A parameter is given twice")
    operation = parameters.get("Action", "")
    if not operation.isidentifier() or not operation.isascii():
        raise RefusalError(Reason.UNKNOWN_OPERATION, "The action is not valid for this web service")
    return operation, parameters


def _json_call(request: Request, body: bytes) -> tuple[str, Mapping[str, Any]]:
    operation = request.headers.get("x-amz-target", "").rpartition(".")[2]
    if not operation.isidentifier() or not operation.isascii():
        raise RefusalError(Reason.UNKNOWN_OPERATION, "X-Amz-Target names no operation")
    try:
        parameters = read_json(body or b"{}")
    except (ValueError, RecursionError):
        raise RefusalError(Reason.MALFORMED, "The body is not valid JSON") from None
    if not isinstance(parameters, dict):
        raise RefusalError(Reason.MALFORMED, "The body is not a JSON object")
    return operation, parameters
