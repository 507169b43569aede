# SPDX-License-Identifier: Apache-2.0
"""AWS's errors. Each service has its own error codes and format, so each reason has a row of codes in
catalog/aws_refusals.toml."""

from __future__ import annotations

import json
import uuid
from enum import Enum
from xml.sax.saxutils import escape

from catalog.tables import table
from localcloud.aws.services import AwsService, Wire
from localcloud.server.api_errors import INTERNAL_ERROR, ApiError, CloudFailureError
from localcloud.server.http import Reply

# XML cannot hold these characters, not even escaped.
_NOT_IN_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 65534, 65535), "�")


class Reason(Enum):
    """The reason for a refusal."""

    UNSIGNED = "unsigned"
    UNKNOWN_KEY = "unknown key"
    BAD_TOKEN = "bad token"
    EXPIRED_TOKEN = "expired token"
    BAD_SIGNATURE = "bad signature"
    SKEWED = "skewed"
    MALFORMED = "malformed"
    BAD_DIGEST = "bad digest"
    DENIED = "denied"
    THROTTLED = "throttled"
    TOO_LARGE = "too large"
    UNKNOWN_OPERATION = "unknown operation"
    BROKEN = "broken"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"


# HTTP status of a refusal by the shared server -> reason.
_REASONS = {413: Reason.TOO_LARGE}


class RefusalError(ApiError):
    """A refused request. If `code` or `status` is set, it replaces that of the reason's row."""

    def __init__(self, reason: Reason, message: str, code: str = "", status: int = 0) -> None:
        super().__init__(status, code, message)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.message}"


def aws_refusal(found: str, **values: object) -> RefusalError:
    """A refusal by a rule of AWS: the row `found` of catalog/aws_refusals.toml, filled in with these values."""
    code, message, *status = table("aws_refusals")["found"][found]
    return RefusalError(Reason.REFUSED, message.format(**values), code.format(**values), *status)


def denied_access(principal: str, action: str, resource: str, why: str = "") -> RefusalError:
    """AWS's refusal of what the policies do not allow: it names the action and the resource."""
    return RefusalError(
        Reason.DENIED,
        f"User: {principal} is not authorized to perform: {action} on resource: {resource} {why}".rstrip(),
    )


def reply_to(error: ApiError, service: AwsService | None) -> Reply:
    """The reply for an error, in the format of the service."""
    if isinstance(error, RefusalError):
        return refusal_reply(error, service)
    if isinstance(error, CloudFailureError) and error.status != INTERNAL_ERROR:
        return error_reply(error.status, error.code, error.message, service)
    reason = Reason.BROKEN if isinstance(error, CloudFailureError) else _REASONS.get(error.status, Reason.MALFORMED)
    return refusal_reply(RefusalError(reason, error.message), service)


def refusal_reply(refusal: RefusalError, service: AwsService | None) -> Reply:
    """The reply for a refusal, in the format of the service. Unknown services get the format of S3, as on AWS."""
    wire = service.wire if service else Wire.S3
    status, code = table("aws_refusals")["reasons"][refusal.reason.value][wire.value]
    return error_reply(refusal.status or status, refusal.code or code, refusal.message, service)


def error_reply(status: int, code: str, message: str, service: AwsService | None) -> Reply:
    wire = service.wire if service else Wire.S3
    request_id = str(uuid.uuid4())
    headers = {"x-amzn-requestid": request_id}
    if wire is Wire.JSON and service:
        content = json.dumps({"__type": code, "message": message}).encode()
        kind = f"application/x-amz-json-{service.json_version}"
        return Reply(status, content=content, headers={**headers, "content-type": kind, "x-amzn-errortype": code})
    form = _XML[wire]
    text = form.format(
        code=_escape_error_text(code),
        message=_escape_error_text(message),
        request=request_id,
        fault="Sender" if status < 500 else "Receiver",
    )
    return Reply(status, content=f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode(),
                 headers={**headers, "x-amz-request-id": request_id, "content-type": "application/xml"})  # fmt: skip


def _escape_error_text(text: str) -> str:
    return escape(text.translate(_NOT_IN_XML))


_XML = {
    Wire.EC2: (
        "<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
        "<RequestID>{request}</RequestID></Response>"
    ),
    Wire.QUERY: (
        "<ErrorResponse><Error><Type>{fault}</Type><Code>{code}</Code><Message>{message}</Message></Error>"
        "<RequestId>{request}</RequestId></ErrorResponse>"
    ),
    Wire.S3: (
        "<Error><Code>{code}</Code><Message>{message}</Message><RequestId>{request}</RequestId></Error>"
    ),
}  # fmt: skip
