# SPDX-License-Identifier: Apache-2.0
"""Work requests: the records of asynchronous operations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from localcloud.oci import authorization, models, tenancy
from localcloud.oci.oci_errors import not_found
from localcloud.oci.ocids import new_ocid
from localcloud.oci.operations import ApiCall, ApiOperation
from localcloud.oci.paging import page_of
from localcloud.oci.tenancy_store import StoredResource
from localcloud.server import http
from localcloud.server.http import Reply

KIND = "work-request"
# Each service has its own path and SDK package for them. Identity and the work-request service share a path.
_PATHS: Mapping[str, str] = {
    "/20190101": "data_science",
    "/20200531": "logging",
    "/20160918": "work_requests",
    "": "object_storage",
}


def add_work_request(
    call: ApiCall, operation_type: str, entity: str, action: str, resource: StoredResource
) -> dict[str, str]:
    """Adds a work request about one resource, and returns the header that names it."""
    moment = http.format_rfc3339(http.current_moment())
    identifier = new_ocid("workrequest", tenancy.REGION_KEY)
    body = {
        "id": identifier,
        "operationType": operation_type,
        "status": "COMPLETED" if call.operation.service == "object_storage" else "SUCCEEDED",
        "compartmentId": resource.compartment,
        "percentComplete": 100.0,
        "resources": [
            {
                "entityType": entity,
                "actionType": action,
                "identifier": resource.id,
                "entityUri": call.input.target.partition("?")[0],
            }
        ],
        "timeAccepted": moment,
        "timeStarted": moment,
        "timeFinished": moment,
        authorization.INHERITED: authorization.inherited_permissions(call),
    }
    settles_at = resource.settles_at
    call.store.add(
        StoredResource(identifier, KIND, resource.compartment, "", "", body, parent=resource.id, settles_at=settles_at)
    )
    return {"opc-work-request-id": identifier}


def get_work_request(service: str, call: ApiCall) -> Reply:
    request = _find_work_request(call)
    return Reply(200, models.shape_reply(service, "WorkRequest", _current_body(request)), {"etag": request.etag})


def list_work_requests(service: str, call: ApiCall) -> Reply:
    call.needed("compartmentId")
    page = page_of(call.store, KIND, call.query, {"resourceId": "parent"}, live_only=True)
    model = "WorkRequestSummary" if service != "object_storage" else "WorkRequest"
    seen = (item for item in page.items if authorization.may_see(call, item))
    return Reply(200, [models.shape_reply(service, model, _current_body(item)) for item in seen], page.headers)


def list_no_work_entries(call: ApiCall) -> Reply:
    _find_work_request(call)
    return Reply(200, [])


def _find_work_request(call: ApiCall) -> StoredResource:
    request = call.store.get(call.params["workRequestId"])
    if request is None or request.kind != KIND:
        raise not_found("work request")
    return request


def _current_body(request: StoredResource) -> Mapping[str, Any]:
    """The work request as it is now. It ends when its resource has settled."""
    if request.settles_at <= http.current_moment():
        return request.body
    unfinished = {name: value for name, value in request.body.items() if name != "timeFinished"}
    return {**unfinished, "status": "IN_PROGRESS", "percentComplete": 50.0}


def work_request_operations() -> list[ApiOperation]:
    rows = []
    for prefix, service in _PATHS.items():
        path = f"{prefix}/workRequests"
        rows += [
            ApiOperation(
                "GetWorkRequest", "GET", f"{path}/{{workRequestId}}", partial(get_work_request, service), service
            ),
            ApiOperation("ListWorkRequests", "GET", path, partial(list_work_requests, service), service),
            ApiOperation(
                "ListWorkRequestErrors", "GET", f"{path}/{{workRequestId}}/errors", list_no_work_entries, service
            ),
            ApiOperation("ListWorkRequestLogs", "GET", f"{path}/{{workRequestId}}/logs", list_no_work_entries, service),
        ]
    return rows
