# SPDX-License-Identifier: Apache-2.0
"""OpenPAI's refusals, from the source of its REST server (v1.8.0): each has a status, a code and a message."""

from __future__ import annotations

from localcloud.server.api_errors import ApiError


def no_job(name: str) -> ApiError:
    return ApiError(404, "NoJobError", f"Job {name} is not found.")


def no_attempt(name: str, number: str) -> ApiError:
    return ApiError(404, "NoJobError", f"Attempt {number} of job {name} is not found.")


def no_task(name: str, role: str, index: str) -> ApiError:
    """The published description calls it NoTaskError; models/v2/task.js does not."""
    return ApiError(404, "NoJobError", f"Task {role}-{index} is not found in job {name}.")


def no_task_log() -> ApiError:
    return ApiError(404, "NoTaskLogError", "Log of task is not found.")


def no_tag(name: str, tag: str) -> ApiError:
    return ApiError(404, "NoTagError", f"Tag {tag} is not found for job {name}.")


def no_api(path: str) -> ApiError:
    return ApiError(404, "NoApiError", f"API {path} is not found.")


def no_storage(name: str) -> ApiError:
    return ApiError(404, "NoStorageError", f"Storage {name} is not found.")


def no_user(name: str) -> ApiError:
    """400, and not the 404 of the published description: controllers/v2/user.js and token.js."""
    return ApiError(400, "NoUserError", f"User {name} is not found.")


def no_virtual_cluster(name: str) -> ApiError:
    return ApiError(404, "NoVirtualClusterError", f"Vc {name} not found")


def job_exists(name: str) -> ApiError:
    return ApiError(409, "ConflictJobError", f"Job name {name} already exists.")


def forbidden_user(message: str) -> ApiError:
    return ApiError(403, "ForbiddenUserError", message)


def unauthorized_user(message: str) -> ApiError:
    return ApiError(401, "UnauthorizedUserError", message)


def invalid_protocol(message: str) -> ApiError:
    return ApiError(400, "InvalidProtocolError", message)


def unhandled_error(message: str) -> ApiError:
    """A failure of the REST server itself: its error handler (config/express.js) answers without a code."""
    return ApiError(500, "", message)


def invalid_parameters(message: str) -> ApiError:
    return ApiError(400, "InvalidParametersError", message)


def wrong_password() -> ApiError:
    return ApiError(400, "IncorrectPasswordError", "Password is incorrect.")
