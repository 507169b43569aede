# SPDX-License-Identifier: Apache-2.0
"""Calls of a cluster's REST API, with retries while it is busy. Jobs are validated before they are submitted, and
refusals get explanations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from components.openpai.client.cluster_errors import (
    ApiError,
    cluster_error_text,
    cluster_refusal,
    is_gone_from_cluster,
    is_network,
    is_taken,
    tls_remedy,
)
from components.openpai.client.cluster_session import Answer, Session, user_of_token
from components.openpai.client.jobs import job_of
from components.openpai.protocol import LONGEST_TEXT, protocol_problems, text_of
from components.platform import calls
from components.platform.calls import Call, ProviderError
from components.platform.runs import RunSpec
from launcher.escaping import terminal_line

T = TypeVar("T")

_BUSY = frozenset({429, 500, 502, 503, 504})
# Jobs per page of a list.
_PAGE = 1000
_REFUSES_CLUSTERS = frozenset({"NoVirtualClusterError", "ForbiddenUserError"})
_REFUSES_STORAGES = frozenset({"NoStorageError"})


def attempt_on_cluster(call: Call, what: str, operation: Callable[[], T]) -> T:
    """Does `operation`. Retries while the cluster is busy or unreachable."""
    return calls.call_with_retries(_ERRORS, call, what, operation, 0.0)


def ask_cluster(session: Session, call: Call, what: str, path: str, **query: str) -> Any:
    """A resource of the REST API, parsed from JSON."""
    address = session.address(path) + (f"?{urlencode(query)}" if query else "")

    def read() -> Any:
        answer = session.send("GET", address)
        try:
            return answer.json
        except ValueError as error:
            raise ApiError(0, "", "the response is not JSON") from error

    return attempt_on_cluster(call, what, read)


def ask_cluster_if_exists(session: Session, call: Call, what: str, path: str, **query: str) -> Any:
    """As `ask`, but None if the resource does not exist."""
    return if_exists(lambda: ask_cluster(session, call, what, path, **query))


def if_exists(read: Callable[[], T]) -> T | None:
    """The result of `read`. None if the resource does not exist."""
    try:
        return read()
    except ProviderError as error:
        if is_gone_from_cluster(error.__cause__):
            return None
        raise


def change_resource(session: Session, call: Call, what: str, method: str, path: str, value: Mapping[str, Any]) -> None:
    """Changes a resource. Idempotent."""
    body = json.dumps(value).encode()
    headers = {"Content-Type": "application/json"}
    attempt_on_cluster(call, what, lambda: session.send(method, session.address(path), body, headers))


def post_job(session: Session, call: Call, what: str, text: str) -> None:
    """Submits a job. A lost response is retried, so a conflict may mean that this job was accepted."""
    body, headers = text.encode(), {"Content-Type": "text/yaml"}

    def post() -> Answer:
        return session.send("POST", session.address("jobs"), body, headers)

    attempt_on_cluster(call, what, post)


def list_cluster_jobs(session: Session, call: Call, what: str, **query: str) -> Iterator[Mapping[str, Any]]:
    """Summaries of jobs, the newest first. Each job appears once, even if the list changes between pages."""
    seen: set[str] = set()
    offset = 0
    while True:
        page = ask_cluster(session, call, what, "jobs", **query, offset=str(offset), limit=str(_PAGE))
        rows = [row for row in page if isinstance(row, Mapping)] if isinstance(page, list) else []
        for row in rows:
            name = f"{row.get('username')}~{row.get('name')}"
            if name not in seen:
                seen.add(name)
                yield row
        if len(rows) < _PAGE:
            return
        offset += len(rows)


def job_path(user: str, name: str, *below: object) -> str:
    """The path of a job, or of something below it."""
    return "/".join(["jobs", quote(f"{user}~{name}", safe="~"), *(quote(str(part), safe="") for part in below)])


def _retry_seconds(error: Exception, access_minutes: float, patience: float) -> float:
    if isinstance(error, ApiError):
        return min(calls.TRANSIENT_SECONDS, patience) if error.status in _BUSY else 0.0
    return patience if is_network(error) and tls_remedy(error) is None else 0.0


_ERRORS = calls.ErrorPolicy(_retry_seconds, cluster_error_text, cluster_refusal)


def submit_run_job(session: Session, call: Call, spec: RunSpec, name: str) -> bool:
    """Whether the cluster accepted the job now. False if a job with this name already exists."""
    job = job_of(spec, name)
    wrongs = protocol_problems(job)
    if wrongs:
        lines = "\n".join(f"  {terminal_line(str(wrong))}" for wrong in wrongs)
        raise ProviderError(
            f"The job of {spec.display_name} breaks OpenPAI's protocol:\n{lines}",
            "`trainyard check` shows this for a stack file. Correct the `protocol` of a run that was written by hand.",
        )
    text = text_of(job)
    if len(text.encode()) > LONGEST_TEXT:
        raise ProviderError(
            f"The job of {spec.display_name} is {len(text.encode()) // 1024} KiB of text; OpenPAI takes "
            f"{LONGEST_TEXT // 1024} KiB.",
            "Put the code into the image, a storage or a repository, and take long texts out of the environment.",
        )
    # The job would belong to another user of the token, so the stack would never find it.
    user = str(spec.own["cluster"]["user"])
    owner = user_of_token(session.token)
    if owner and owner != user:
        raise ProviderError(
            f"The token ({session.token_from}) is that of the user {terminal_line(owner)}, and `user` of "
            f"`trainyard:cluster` is {user}.",
            "Name the user of the token, or use a token of that user.",
        )
    what = f"Submit the job {name}"
    try:
        post_job(session, call, what, text)
    except ProviderError as error:
        cause = error.__cause__
        if is_taken(cause):
            return False
        if isinstance(cause, ApiError) and cause.code in _REFUSES_CLUSTERS:
            raise ProviderError(error.cause, _virtual_clusters_remedy(session, call, error)) from cause
        if isinstance(cause, ApiError) and cause.code in _REFUSES_STORAGES:
            raise ProviderError(error.cause, _storages_remedy(session, call)) from cause
        raise
    return True


def _virtual_clusters_remedy(session: Session, call: Call, error: ProviderError) -> str:
    """A remedy with all virtual clusters, and those of the user. The cluster refuses a missing one in the same way as
    a forbidden one."""
    try:
        answer = ask_cluster(session, call, "List the virtual clusters", "virtual-clusters")
    except ProviderError:
        return error.remedy
    names = ", ".join(sorted(terminal_line(str(name)) for name in answer)) if isinstance(answer, Mapping) else ""
    mine: list[str] = []
    with suppress(ProviderError):
        user = ask_cluster(session, call, "List what the user may use", f"users/{session.user}")
        granted = user.get("virtualCluster") if isinstance(user, Mapping) else None
        mine = sorted(terminal_line(str(name)) for name in granted) if isinstance(granted, list) else []
    allowed = f" {session.user} may use {', '.join(mine)}." if mine else ""
    return f"The cluster has these virtual clusters: {names or 'none'}.{allowed} `virtualCluster` of " + (
        "`trainyard:cluster` names one; its administrators say who may use which."
    )


def _storages_remedy(session: Session, call: Call) -> str:
    try:
        answer = ask_cluster(session, call, "List the storages", "storages")
    except ProviderError:
        return "The cluster's administrators say who may use which storage."
    rows: Any = answer.get("storages") if isinstance(answer, Mapping) else None
    names = [terminal_line(str(row.get("name"))) for row in rows or () if isinstance(row, Mapping)]
    return (
        f"{session.user} may use these storages: {', '.join(sorted(names)) or 'none'}. `name` of `trainyard:storage` "
        "names one; the cluster's administrators say who may use which."
    )
