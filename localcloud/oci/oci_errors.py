# SPDX-License-Identifier: Apache-2.0
"""OCI's refusals: a status, a code and a message each. Handlers raise them."""

from __future__ import annotations

from localcloud.server.api_errors import ApiError


def missing_parameter(name: str) -> ApiError:
    return ApiError(400, "MissingParameter", f"{name} is required")


def related_not_found(what: str) -> ApiError:
    return ApiError(
        400, "RelatedResourceNotAuthorizedOrNotFound", f"Authorization failed or requested resource not found: {what}"
    )


def not_authenticated(reason: str) -> ApiError:
    return ApiError(
        401,
        "NotAuthenticated",
        f"The required information to complete authentication was not provided or is incorrect: {reason}",
    )


def not_found(what: str = "") -> ApiError:
    suffix = f": {what}" if what else ""
    return ApiError(404, "NotAuthorizedOrNotFound", f"Authorization failed or requested resource not found{suffix}")


def already_exists(what: str) -> ApiError:
    return ApiError(409, "NotAuthorizedOrResourceAlreadyExists", f"{what} already exists, or you may not see it")


def conflict_error(message: str) -> ApiError:
    return ApiError(409, "Conflict", message)


def incorrect_state(message: str) -> ApiError:
    return ApiError(409, "IncorrectState", message)


def etag_mismatch() -> ApiError:
    return ApiError(412, "NoEtagMatch", "The If-Match header does not match the current etag of the resource")


def not_implemented(operation: str) -> ApiError:
    """OCI's code of a 501, with the status 400. Oracle's provider retries a 501, and a 405, for two minutes. Of the
    statuses that it shows at once, only 400 means nothing else."""
    return ApiError(400, "MethodNotImplemented", f"The local cloud does not implement {operation}")
