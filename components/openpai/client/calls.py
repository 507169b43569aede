# SPDX-License-Identifier: Apache-2.0
"""Calls of the REST API: which are tried again and for how long."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from components.openpai.client.errors import ApiError, error_text, is_gone, is_network, refusal, tls_remedy
from components.openpai.client.session import Answer, Session
from components.platform import calls
from components.platform.calls import Call, ProviderError

T = TypeVar("T")

_BUSY = frozenset({429, 500, 502, 503, 504})
# Jobs of one page of a list.
_PAGE = 1000


def attempt(call: Call, what: str, operation: Callable[[], T]) -> T:
    """Do `operation`; try again while the cluster is busy or cannot be reached."""
    return calls.attempt(_ERRORS, call, what, operation, 0.0)


def ask(session: Session, call: Call, what: str, path: str, **query: str) -> Any:
    """What a resource of the REST API is, as JSON."""
    address = session.address(path) + (f"?{urlencode(query)}" if query else "")

    def read() -> Any:
        answer = session.send("GET", address)
        try:
            return answer.json
        except ValueError as error:
            raise ApiError(0, "", "the answer is no JSON") from error

    return attempt(call, what, read)


def ask_if_exists(session: Session, call: Call, what: str, path: str, **query: str) -> Any:
    """None if it does not exist."""
    return if_exists(lambda: ask(session, call, what, path, **query))


def if_exists(read: Callable[[], T]) -> T | None:
    """None if what is asked for does not exist."""
    try:
        return read()
    except ProviderError as error:
        if is_gone(error.__cause__):
            return None
        raise


def tell(session: Session, call: Call, what: str, method: str, path: str, value: Mapping[str, Any]) -> None:
    """Changes a resource. The same change twice is one change."""
    body = json.dumps(value).encode()
    headers = {"Content-Type": "application/json"}
    attempt(call, what, lambda: session.send(method, session.address(path), body, headers))


def submit(session: Session, call: Call, what: str, text: str) -> None:
    """Submits a job. It may exist already: an answer that was lost is asked for again."""
    body, headers = text.encode(), {"Content-Type": "text/yaml"}

    def post() -> Answer:
        return session.send("POST", session.address("jobs"), body, headers)

    attempt(call, what, post)


def jobs(session: Session, call: Call, what: str, **query: str) -> Iterator[Mapping[str, Any]]:
    """Summaries of jobs, the newest first, without those that came or went while the list was read twice."""
    seen: set[str] = set()
    offset = 0
    while True:
        page = ask(session, call, what, "jobs", **query, offset=str(offset), limit=str(_PAGE))
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


def _seconds_allowed(error: Exception, access_minutes: float, patience: float) -> float:
    if isinstance(error, ApiError):
        return min(calls.TRANSIENT_SECONDS, patience) if error.status in _BUSY else 0.0
    return patience if is_network(error) and tls_remedy(error) is None else 0.0


_ERRORS = calls.ErrorPolicy(_seconds_allowed, error_text, refusal)
