# SPDX-License-Identifier: Apache-2.0
"""Submits a job: judged before it is sent, and with words for what the cluster may refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.openpai.client import calls
from components.openpai.client.errors import ApiError, is_taken
from components.openpai.client.jobs import job_of
from components.openpai.client.session import Session, user_of_token
from components.openpai.protocol import LONGEST_TEXT, problems, text_of
from components.platform.calls import Call, ProviderError
from components.platform.runs import RunSpec
from launcher.escaping import terminal

_REFUSES_CLUSTERS = frozenset({"NoVirtualClusterError", "ForbiddenUserError"})
_REFUSES_STORAGES = frozenset({"NoStorageError"})


def submit(session: Session, call: Call, spec: RunSpec, name: str) -> bool:
    """Whether the cluster took the job now. False if it has one of this name already."""
    text = _judged(spec, name)
    _refuse_other_user(session, str(spec.own["cluster"]["user"]))
    what = f"Submit the job {name}"
    try:
        calls.submit(session, call, what, text)
    except ProviderError as error:
        cause = error.__cause__
        if is_taken(cause):
            return False
        if isinstance(cause, ApiError) and cause.code in _REFUSES_CLUSTERS:
            raise ProviderError(error.cause, _which_clusters(session, call, error)) from cause
        if isinstance(cause, ApiError) and cause.code in _REFUSES_STORAGES:
            raise ProviderError(error.cause, _which_storages(session, call)) from cause
        raise
    return True


def _judged(spec: RunSpec, name: str) -> str:
    job = job_of(spec, name)
    wrongs = problems(job)
    if wrongs:
        lines = "\n".join(f"  {terminal(str(wrong))}" for wrong in wrongs)
        raise ProviderError(
            f"The job of {spec.display_name} breaks OpenPAI's protocol:\n{lines}",
            "`trainyard check` says it for a stack file. Correct the `protocol` of a run that was written by hand.",
        )
    text = text_of(job)
    if len(text.encode()) > LONGEST_TEXT:
        raise ProviderError(
            f"The job of {spec.display_name} is {len(text.encode()) // 1024} KiB of text; OpenPAI takes "
            f"{LONGEST_TEXT // 1024} KiB.",
            "Put the code into the image, a storage or a repository, and take long texts out of the environment.",
        )
    return text


def _refuse_other_user(session: Session, user: str) -> None:
    """A job belongs to the user of the token, whatever the stack says: it would never be found again."""
    owner = user_of_token(session.token)
    if owner and owner != user:
        raise ProviderError(
            f"The token ({session.token_from}) is that of the user {terminal(owner)}, and `user` of "
            f"`trainyard:cluster` is {user}.",
            "Name the user of the token, or take a token of that user.",
        )


def _which_clusters(session: Session, call: Call, error: ProviderError) -> str:
    """The virtual clusters that there are: a name that does not exist is refused as one that is not allowed."""
    try:
        answer = calls.ask(session, call, "List the virtual clusters", "virtual-clusters")
    except ProviderError:
        return error.remedy
    names = ", ".join(sorted(terminal(str(name)) for name in answer)) if isinstance(answer, Mapping) else ""
    mine = _granted(session, call)
    allowed = f" {session.user} may use {', '.join(mine)}." if mine else ""
    return f"The cluster has these virtual clusters: {names or 'none'}.{allowed} `virtualCluster` of " + (
        "`trainyard:cluster` names one; its administrators say who may use which."
    )


def _granted(session: Session, call: Call) -> list[str]:
    try:
        answer = calls.ask(session, call, "Ask what the user may use", f"users/{session.user}")
    except ProviderError:
        return []
    names = answer.get("virtualCluster") if isinstance(answer, Mapping) else None
    return sorted(terminal(str(name)) for name in names) if isinstance(names, list) else []


def _which_storages(session: Session, call: Call) -> str:
    try:
        answer = calls.ask(session, call, "List the storages", "storages")
    except ProviderError:
        return "The cluster's administrators say who may use which storage."
    rows: Any = answer.get("storages") if isinstance(answer, Mapping) else None
    names = [terminal(str(row.get("name"))) for row in rows or () if isinstance(row, Mapping)]
    return (
        f"{session.user} may use these storages: {', '.join(sorted(names)) or 'none'}. `name` of `trainyard:storage` "
        "names one; the cluster's administrators say who may use which."
    )
