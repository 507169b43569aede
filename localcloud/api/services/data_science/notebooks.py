# SPDX-License-Identifier: Apache-2.0
"""Notebook sessions. They exist so that their principals can act; none opens in a browser."""

from __future__ import annotations

from localcloud.api import kinds, lifecycles, limits, tenancy
from localcloud.api.errors import incorrect_state, missing_parameter
from localcloud.api.http import Json, Reply
from localcloud.api.kinds import Receipts, ResourceKind
from localcloud.api.operations import ApiCall
from localcloud.api.services.data_science.jobs import SERVICE, VERSION, require_network


def _notebook(call: ApiCall, body: Json) -> Json:
    settings = body.get("notebookSessionConfigDetails") or body.get("notebookSessionConfigurationDetails")
    if not settings:
        raise missing_parameter("notebookSessionConfigDetails")
    require_network(call, settings.get("subnetId") or "")
    limits.require_nodes(call, settings["shape"], 1)
    url = f"https://{body['id'].rsplit('.', 1)[-1]}.notebook.{tenancy.REGION}.oci.oraclecloud.com"
    return {**body, "notebookSessionConfigDetails": settings, "notebookSessionUrl": url}


NOTEBOOK = ResourceKind(
    "notebook-session", "NotebookSession", SERVICE, f"{VERSION}/notebookSessions", "notebookSessionId",
    lifecycles.JOB, ocid="datasciencenotebooksession", parent_field="projectId", summary="NotebookSessionSummary",
    references={"projectId": "project"}, on_create=_notebook,
    receipts=Receipts("notebook-session", "NOTEBOOK_SESSION_{verb}"), asynchronous=frozenset({"Create", "Delete"}),
)  # fmt: skip


def activate(call: ApiCall) -> Reply:
    return _change_state(call, "INACTIVE", "ACTIVE")


def deactivate(call: ApiCall) -> Reply:
    return _change_state(call, "ACTIVE", "INACTIVE")


def _change_state(call: ApiCall, before: str, after: str) -> Reply:
    notebook = kinds.find_living(NOTEBOOK, call)
    notebook.require_etag(call.if_match)
    if notebook.state != before:
        raise incorrect_state(f"The notebook session {notebook.id} is {notebook.state}")
    call.store.put(notebook, state=after)
    return Reply(202)
