# SPDX-License-Identifier: Apache-2.0
"""Refusals that all platforms share: a status, a code and a message. Each API writes them in its own format."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

INTERNAL_ERROR = 500
# The error codes of the kernel and of SQLite for a disk that cannot be written.
_DISK = (
    ("There is no space left", (errno.ENOSPC, errno.EDQUOT), (sqlite3.SQLITE_FULL,)),
    ("Nothing can be written", (errno.EROFS, errno.EACCES), (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)),
    ("The disk fails", (errno.EIO,), (sqlite3.SQLITE_IOERR,)),
)


class ApiError(Exception):
    """A refused request, as the client sees it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message


class CloudFailureError(ApiError):
    """A failure of the local cloud. The call itself may be valid."""


def invalid_parameter(message: str) -> ApiError:
    return ApiError(400, "InvalidParameter", message)


def cannot_parse_request(message: str) -> ApiError:
    return ApiError(400, "CannotParseRequest", message)


def request_too_large(limit: int) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"The request body is larger than {limit} bytes")


def request_too_late(why: str) -> ApiError:
    return ApiError(408, "RequestTimeout", f"The request did not arrive in time: {why}")


def explain_disk_error(error: Exception, home: Path) -> str:
    """The problem of the disk, for people; empty for an error with another cause."""
    number = getattr(error, "errno", None)
    sqlite = getattr(error, "sqlite_errorcode", 0) & 0xFF
    reasons = [reason for reason, numbers, codes in _DISK if number in numbers or sqlite in codes]
    return f"{reasons[0]} under {home}, where the local cloud keeps everything" if reasons else ""


def explain_cloud_failure(problem: Exception, home: Path) -> CloudFailureError:
    """The answer to a client after a failure of the local cloud. For a full or read-only disk it is 507, which clients
    do not retry."""
    if why := explain_disk_error(problem, home):
        return CloudFailureError(507, "InsufficientStorage", f"{why}: this call changed nothing")
    return CloudFailureError(INTERNAL_ERROR, "InternalError", "The local cloud failed; its log has the traceback")
