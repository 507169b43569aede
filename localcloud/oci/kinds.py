# SPDX-License-Identifier: Apache-2.0
"""Kinds of resources as rows. The operations that most kinds share are generated from a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from localcloud.oci import limits, models, tenancy
from localcloud.oci.authorization import may_see, names_of
from localcloud.oci.oci_errors import (
    already_exists,
    conflict_error,
    incorrect_state,
    missing_parameter,
    not_found,
    related_not_found,
)
from localcloud.oci.ocids import Lifecycle, new_ocid
from localcloud.oci.operations import ApiCall, ApiOperation, Handler
from localcloud.oci.paging import page_of
from localcloud.oci.tenancy_store import StoredResource, ocids_in
from localcloud.oci.work_requests import add_work_request
from localcloud.server import http
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.http import Json, Reply

ALL_VERBS = ("Create", "Get", "List", "Update", "Delete", "Move")
CreateHook = Callable[[ApiCall, Json], Json]
UpdateHook = Callable[[ApiCall, StoredResource, Json], Json]
ResourceHook = Callable[[ApiCall, StoredResource], None]


@dataclass(frozen=True)
class WorkRequestNames:
    """The names in the work requests of a kind. `silent`: a write is answered with 202 and an empty body."""

    entity: str
    operation: str
    silent: bool = False


@dataclass(frozen=True)
class ResourceKind:
    """One kind of resource.

    `references`: body fields that must name existing resources of a kind. `held_by`: kinds whose resources prevent the
    deletion of a resource that they mention. `brings`: kinds that belong to this one, and so move with it. `unique_in`:
    the column within which names must be unique.
    """

    name: str
    title: str
    service: str
    path: str
    key: str
    lifecycle: Lifecycle
    ocid: str = ""
    plural: str = ""
    name_field: str = "displayName"
    parent_field: str = ""
    parent_param: str = ""
    summary: str = ""
    collection: str = ""
    create_details: str = ""
    update_details: str = ""
    unique_in: str = ""
    # Fields that the local cloud does not support, with the reason. A request that sets one is refused.
    unserved: Mapping[str, str] = field(default_factory=dict)
    # Further filters of a list, and the column of each.
    filters: Mapping[str, str] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)
    held_by: tuple[str, ...] = ()
    brings: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    work_requests: WorkRequestNames | None = None
    asynchronous: frozenset[str] = frozenset()
    verbs: tuple[str, ...] = ALL_VERBS
    on_create: CreateHook = lambda call, body: body
    on_update: UpdateHook = lambda call, resource, body: body
    on_delete: ResourceHook = lambda call, resource: None
    after_create: ResourceHook = lambda call, resource: None


def kind_operations(kind: ResourceKind) -> list[ApiOperation]:
    """The operations of a kind."""
    plural = kind.plural or f"{kind.title}s"
    item = f"{kind.path}/{{{kind.key}}}"
    made = kind.create_details or f"Create{kind.title}Details"
    update = kind.update_details or f"Update{kind.title}Details"
    move, mover = f"Change{kind.title}CompartmentDetails", partial(move_resource, kind)
    rows: Mapping[str, tuple[str, str, str, Handler, str]] = {
        "Create": (f"Create{kind.title}", "POST", kind.path, partial(create_resource, kind), made),
        "Get": (f"Get{kind.title}", "GET", item, partial(get_resource, kind), ""),
        "List": (f"List{plural}", "GET", kind.path, partial(list_resources, kind), ""),
        "Update": (f"Update{kind.title}", "PUT", item, partial(change_resource, kind), update),
        "Delete": (f"Delete{kind.title}", "DELETE", item, partial(delete_resource, kind), ""),
        "Move": (f"Change{kind.title}Compartment", "POST", f"{item}/actions/changeCompartment", mover, move),
    }
    return [
        ApiOperation(name, method, path, handler, kind.service, details)
        for name, method, path, handler, details in (rows[verb] for verb in kind.verbs)
    ]


def find_of_kind(kind: ResourceKind, call: ApiCall) -> StoredResource:
    """The resource that the path names."""
    resource = call.store.get(call.params[kind.key])
    if resource is None or resource.kind != kind.name or (not resource.live and not kind.lifecycle.gone):
        raise not_found(kind.title)
    if kind.parent_param and resource.parent != call.params[kind.parent_param]:
        raise not_found(kind.title)
    return resource


def find_living(kind: ResourceKind, call: ApiCall) -> StoredResource:
    resource = find_of_kind(kind, call)
    if not resource.live:
        raise not_found(kind.title)
    return resource


def find_settled(kind: ResourceKind, call: ApiCall) -> StoredResource:
    """The resource that the path names. Refuses the call while an earlier change of the resource is in progress."""
    resource = find_living(kind, call)
    resource.require_etag(call.if_match)
    if resource.settles_at > http.current_moment():
        raise incorrect_state(f"The {kind.title} {resource.id} is {resource.shown_state}")
    return resource


def render_of_kind(kind: ResourceKind, resource: StoredResource, state: str = "", model: str = "") -> Json:
    """The body that clients read, by a model of the SDK."""
    body = {**resource.body, "lifecycleState": state or resource.shown_state}
    return models.shape_reply(kind.service, model or kind.title, body)


def require_compartment(call: ApiCall, compartment: str) -> None:
    resource = call.store.get(compartment)
    if resource is None or resource.kind not in ("compartment", "tenancy") or not resource.live:
        raise not_found("compartment")


def require_references(call: ApiCall, references: Mapping[str, str], body: Mapping[str, Any]) -> None:
    for name, kind in references.items():
        value = body.get(name)
        for identifier in value if isinstance(value, list) else [value] if value else []:
            resource = call.store.get(identifier)
            if resource is None or resource.kind != kind or not resource.live:
                raise related_not_found(f"{name} {identifier}")


def _valid_details(kind: ResourceKind, call: ApiCall) -> Json:
    details = call.details()
    for name, reason in kind.unserved.items():
        if details.get(name):
            raise invalid_parameter(f"the local cloud does not support {name}: {reason}")
    models.require_choices(kind.service, kind.title, details)
    return details


def create_resource(kind: ResourceKind, call: ApiCall) -> Reply:
    details = _valid_details(kind, call)
    parent = call.params[kind.parent_param] if kind.parent_param else str(details.get(kind.parent_field, ""))
    holder = call.store.get(parent)
    if kind.parent_param and (holder is None or not holder.live):
        raise not_found(kind.parent_param)
    compartment = details.get("compartmentId") or (holder.compartment if holder else "")
    require_compartment(call, compartment)
    require_references(call, kind.references, details)
    limits.require_room(call, kind.name)
    ocid = kind.ocid or kind.name.replace("-", "")
    identifier = new_ocid(ocid, tenancy.REGION_KEY)
    moment = http.current_moment()
    field_names = models.model_fields(kind.service, kind.title)
    computed = {
        "id": identifier,
        "compartmentId": compartment,
        kind.parent_param: parent,
        kind.name_field: details.get(kind.name_field)
        or f"{ocid}{http.format_rfc3339(moment)[:19].translate(_DIGITS_ONLY)}",
        "createdBy": call.principal.id,
        "timeCreated": http.format_rfc3339(moment),
        "timeLastModified": http.format_rfc3339(moment),
    }
    base = {"freeformTags": {}, "definedTags": {}, **kind.defaults, **details, **computed}
    body = kind.on_create(call, {name: value for name, value in base.items() if name in field_names})
    require_unique(kind, call, body[kind.name_field], compartment, parent, "")
    name, state = body[kind.name_field], body.pop("lifecycleState", kind.lifecycle.ready)
    settles_at = moment + call.cloud.faults.seconds("transition", call.operation.name)
    resource = call.store.add(
        StoredResource(
            identifier, kind.name, compartment, name, state, body, parent, kind.lifecycle.making, settles_at,
            created=moment,
        )
    )  # fmt: skip
    kind.after_create(call, resource)
    return _answer_with_resource(kind, call, "Create", "CREATED", resource, kind.lifecycle.making)


def get_resource(kind: ResourceKind, call: ApiCall) -> Reply:
    resource = find_of_kind(kind, call)
    return Reply(200, render_of_kind(kind, resource), {"etag": resource.etag})


def list_resources(kind: ResourceKind, call: ApiCall) -> Reply:
    query = dict(call.query)
    if kind.parent_param:
        query[kind.parent_param] = call.params[kind.parent_param]
    else:
        call.needed("compartmentId")
    subtree = query.pop("compartmentIdInSubtree", query.pop("isCompartmentIdInSubtree", ""))
    everywhere = subtree == "true" and query.get("compartmentId") == tenancy.TENANCY
    if everywhere:
        del query["compartmentId"]
    columns = {name: "parent" for name in (kind.parent_field, kind.parent_param) if name} | {
        kind.key: "id",
        **kind.filters,
    }
    page = page_of(call.store, kind.name, query, columns, live_only=query.get("lifecycleState") != kind.lifecycle.gone)
    seen = [item for item in page.items if not everywhere or may_see(call, item)]
    items = [render_of_kind(kind, item, model=kind.summary) for item in seen]
    if not kind.collection:
        return Reply(200, items, page.headers)
    totals = {"items": items, "remainingItemsCount": 0, f"{kind.name.removeprefix('container-')}Count": len(items)}
    return Reply(200, {"layerCount": 0, "layersSizeInBytes": 0, "imageCount": 0, **totals}, page.headers)


def change_resource(kind: ResourceKind, call: ApiCall) -> Reply:
    resource = find_settled(kind, call)
    details = _valid_details(kind, call)
    require_references(call, kind.references, details)
    field_names = models.model_fields(kind.service, kind.title)
    changes = {name: value for name, value in details.items() if name in field_names}
    if "timeLastModified" in field_names:
        changes["timeLastModified"] = http.format_rfc3339(http.current_moment())
    body = kind.on_update(call, resource, {**resource.body, **changes})
    require_unique(kind, call, body[kind.name_field], resource.compartment, resource.parent, resource.id)
    state = body.pop("lifecycleState", resource.state)
    changed = call.store.put(resource, body=body, name=body[kind.name_field], state=state)
    return _answer_with_resource(kind, call, "Update", "UPDATED", changed, "")


def delete_resource(kind: ResourceKind, call: ApiCall) -> Reply:
    resource = find_settled(kind, call)
    own = set(ocids_in(resource.body))  # its own parts, such as a VCN's defaults, are deleted with it
    if holders := [holder for holder in call.store.mentioning(resource.id, kind.held_by) if holder.id not in own]:
        by = names_of(call, holders)
        raise conflict_error(f"The {kind.title} {resource.id} cannot be deleted while it is in use by {by}")
    kind.on_delete(call, resource)
    removed = remove_resource(kind, call, resource)
    return _answer_with_resource(kind, call, "Delete", "DELETED", removed, "")


def remove_resource(kind: ResourceKind, call: ApiCall, resource: StoredResource) -> StoredResource:
    """Deletes a resource. Its lifecycle decides whether clients still see it."""
    until = http.current_moment() + call.cloud.faults.seconds("transition", call.operation.name)
    return call.store.put(
        resource, state=kind.lifecycle.gone, settling=kind.lifecycle.leaving, settles_at=until, live=False
    )


def move_resource(kind: ResourceKind, call: ApiCall) -> Reply:
    resource = find_living(kind, call)
    resource.require_etag(call.if_match)
    compartment = call.details().get("compartmentId")
    if not compartment:
        raise missing_parameter("compartmentId")
    require_compartment(call, compartment)
    changed = call.store.put(resource, compartment=compartment, body={**resource.body, "compartmentId": compartment})
    for within in (within for name in kind.brings for within in call.store.live(name, parent=resource.id)):
        call.store.put(within, compartment=compartment, body={**within.body, "compartmentId": compartment})
    headers = {"etag": changed.etag}
    if "Move" not in kind.asynchronous:
        return Reply(204, headers=headers)
    # Oracle's provider accepts only this action as a successful move.
    return Reply(202, headers=headers | _work_request_header(kind, call, "Move", "RELATED", changed))


_DIGITS_ONLY = str.maketrans("", "", "-:T")


def require_unique(kind: ResourceKind, call: ApiCall, name: str, compartment: str, parent: str, own_id: str) -> None:
    if not kind.unique_in:
        return
    scope = {"compartment": {"compartment": compartment}, "parent": {"parent": parent}, "tenancy": {}}[kind.unique_in]
    if any(other.id != own_id for other in call.store.live(kind.name, name=name, **scope)):
        raise already_exists(f"A {kind.title} named {name}")


def _answer_with_resource(
    kind: ResourceKind, call: ApiCall, verb: str, action: str, resource: StoredResource, state: str
) -> Reply:
    headers = {"etag": resource.etag} if verb != "Delete" else {}
    if verb in kind.asynchronous:
        headers = _work_request_header(kind, call, verb, action, resource) | (
            {} if kind.work_requests and kind.work_requests.silent else headers
        )
    if kind.work_requests and kind.work_requests.silent:
        return Reply(202, headers=headers)
    if verb == "Delete":
        return Reply(202 if verb in kind.asynchronous else 204, headers=headers)
    return Reply(200, render_of_kind(kind, resource, state), headers)


def _work_request_header(
    kind: ResourceKind, call: ApiCall, verb: str, action: str, resource: StoredResource
) -> dict[str, str]:
    names = kind.work_requests or WorkRequestNames(kind.name, kind.name.upper())
    return add_work_request(call, names.operation.format(verb=verb.upper()), names.entity, action, resource)
