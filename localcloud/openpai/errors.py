# SPDX-License-Identifier: Apache-2.0
"""OpenPAI's refusals, as its published description names them: a status, a code and a message."""

from __future__ import annotations

from localcloud.api.errors import ApiError


def no_job(name: str) -> ApiError:
    return ApiError(404, "NoJobError", f"Job {name} is not found.")


def no_attempt(name: str, number: str) -> ApiError:
    return ApiError(404, "NoJobError", f"Attempt {number} of job {name} is not found.")


def no_task(role: str, index: str) -> ApiError:
    return ApiError(404, "NoTaskError", f"Task {role}-{index} is not found.")


def no_task_log() -> ApiError:
    return ApiError(404, "NoTaskLogError", "Log of task is not found.")


def no_tag(name: str, tag: str) -> ApiError:
    return ApiError(404, "NoTagError", f"Tag {tag} is not found for job {name}.")


def no_api(path: str) -> ApiError:
    return ApiError(404, "NoApiError", f"API {path} is not found.")


def no_storage(name: str) -> ApiError:
    return ApiError(404, "NoStorageError", f"Storage {name} is not found.")


def no_user(name: str, status: int = 404) -> ApiError:
    return ApiError(status, "NoUserError", f"User {name} is not found.")


def no_virtual_cluster(name: str, status: int) -> ApiError:
    return ApiError(status, "NoVirtualClusterError", f"Virtual cluster {name} is not found.")


def job_exists(name: str) -> ApiError:
    return ApiError(409, "ConflictJobError", f"Job name {name} already exists.")


def forbidden(message: str) -> ApiError:
    return ApiError(403, "ForbiddenUserError", message)


def unauthorized(message: str) -> ApiError:
    return ApiError(401, "UnauthorizedUserError", message)


def too_much(message: str) -> ApiError:
    return ApiError(403, "NoEnoughQuotaError", message)


def invalid_protocol(message: str) -> ApiError:
    return ApiError(400, "InvalidProtocolError", message)


def invalid_parameters(message: str) -> ApiError:
    return ApiError(400, "InvalidParametersError", message)


def wrong_password() -> ApiError:
    return ApiError(400, "IncorrectPasswordError", "Password is incorrect.")
