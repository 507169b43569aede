# SPDX-License-Identifier: Apache-2.0
"""Identity: the tenancy, its compartments, users, groups and dynamic groups, and its policies."""

from __future__ import annotations

import re
from collections.abc import Sequence

from components.oci.iam.matching import parse_rule
from components.oci.iam.parse import parse_statement
from components.oci.iam.statement import StatementError
from localcloud.oci import kinds, models, ocids, tenancy, work_requests
from localcloud.oci.access_decisions import read_compartments
from localcloud.oci.authorization import delay_effect
from localcloud.oci.kinds import ResourceKind, WorkRequestNames
from localcloud.oci.oci_errors import already_exists, conflict_error, not_found
from localcloud.oci.ocids import fixed_ocid
from localcloud.oci.operations import ApiCall, ApiOperation
from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.server import http
from localcloud.server.api_errors import ApiError, invalid_parameter
from localcloud.server.http import Json, Reply

SERVICE = "identity"
VERSION = "/20160918"
# OCI's own limit.
MOST_STATEMENTS = 50


def _in_tenancy(call: ApiCall, body: Json) -> Json:
    if body["compartmentId"] != tenancy.TENANCY:
        raise invalid_parameter("compartmentId must be the tenancy: users, groups and dynamic groups belong to it")
    return body


def _dynamic_group(call: ApiCall, body: Json, before: str = "") -> Json:
    try:
        parse_rule(body["matchingRule"])
    except StatementError as error:
        raise invalid_parameter(f"matchingRule: {error}") from None
    return delay_effect(call, _in_tenancy(call, body), before)


def _complete_policy(call: ApiCall, body: Json, before: Sequence[str] = ()) -> Json:
    """Refuses invalid statements, and those about compartments outside of the policy's own."""
    if not body["statements"]:
        raise invalid_parameter("a policy has at least one statement")
    if len(body["statements"]) > MOST_STATEMENTS:
        raise ApiError(
            400,
            "LimitExceeded",
            f"The policy has {len(body['statements'])} statements; at most {MOST_STATEMENTS} are allowed",
        )
    tree = read_compartments(call.store)
    for text in body["statements"]:
        try:
            statement = parse_statement(text)
        except StatementError as error:
            raise invalid_parameter(f"statement {text!r}: {error}") from None
        if tree.resolve(statement.location, body["compartmentId"]) is None:
            raise invalid_parameter(f"statement {text!r}: its compartment does not exist at or below the policy's own")
    return delay_effect(call, body, before)


def _complete_user(call: ApiCall, body: Json) -> Json:
    capable = {"canUseApiKeys": True, "canUseConsolePassword": False, "canUseAuthTokens": True}
    return {**_in_tenancy(call, body), "capabilities": capable}


def _distinct_name(call: ApiCall, body: Json) -> Json:
    """Refuses a tag or a namespace whose name differs from another's only in case."""
    kind, within = ("tag", {"parent": body["tagNamespaceId"]}) if "tagNamespaceId" in body else ("tag-namespace", {})
    name = body["name"]
    if not _TAG_NAME.fullmatch(name):
        raise invalid_parameter("name must be 1 to 100 printable ASCII characters without spaces and periods")
    if any(other.name.lower() == name.lower() for other in call.store.live(kind, **within)):
        raise already_exists(f"A {kind} named {name}")
    return body


def _require_removable_user(call: ApiCall, user: StoredResource) -> None:
    """Refuses to delete a user of the credentials file, or, like OCI, one that is still in a group."""
    if user.id in (seeded.id for seeded in tenancy.USERS):
        raise conflict_error(f"The user {user.name} belongs to the local tenancy and cannot be deleted")
    if tenancy.groups_of_user(call.store, user.id):
        raise conflict_error(f"The user {user.id} is still in a group")


def _require_empty_group(call: ApiCall, group: StoredResource) -> None:
    if call.store.live(tenancy.MEMBERSHIP, parent=group.id):
        raise conflict_error(f"The group {group.id} still has users")


def _require_empty_compartment(call: ApiCall, compartment: StoredResource) -> None:
    held = call.store.select("compartment = ? AND live AND kind != ? LIMIT 1", (compartment.id, work_requests.KIND))
    if held:
        raise conflict_error(f"The compartment {compartment.id} is not empty: it has the {held[0].kind} {held[0].id}")


_TAG_NAME = re.compile(r"[!-\-/-~]{1,100}")
_IN_THE_TENANCY = ("Create", "Get", "List", "Update", "Delete")
COMPARTMENT = ResourceKind(
    "compartment", "Compartment", SERVICE, f"{VERSION}/compartments", "compartmentId", ocids.IDENTITY,
    name_field="name", unique_in="compartment", verbs=("Create", "List", "Update", "Delete"),
    work_requests=WorkRequestNames("compartment", "{verb}_COMPARTMENT"), asynchronous=frozenset({"Delete"}),
    on_delete=_require_empty_compartment,
)  # fmt: skip
GROUP = ResourceKind(
    "group", "Group", SERVICE, f"{VERSION}/groups", "groupId", ocids.IDENTITY, name_field="name",
    unique_in="tenancy", verbs=_IN_THE_TENANCY, on_create=_in_tenancy, on_delete=_require_empty_group,
)  # fmt: skip
USER = ResourceKind(
    "user", "User", SERVICE, f"{VERSION}/users", "userId", ocids.IDENTITY, name_field="name",
    unique_in="tenancy", verbs=_IN_THE_TENANCY, defaults={"isMfaActivated": False}, on_create=_complete_user,
    on_delete=_require_removable_user,
)  # fmt: skip
DYNAMIC_GROUP = ResourceKind(
    "dynamic-group", "DynamicGroup", SERVICE, f"{VERSION}/dynamicGroups", "dynamicGroupId", ocids.IDENTITY,
    name_field="name", unique_in="tenancy", verbs=("Create", "Get", "List", "Update", "Delete"),
    on_create=_dynamic_group,
    on_update=lambda call, group, body: _dynamic_group(call, body, group.body["matchingRule"]),
)  # fmt: skip
TAG_NAMESPACE = ResourceKind(
    "tag-namespace", "TagNamespace", SERVICE, f"{VERSION}/tagNamespaces", "tagNamespaceId", ocids.IDENTITY,
    name_field="name", summary="TagNamespaceSummary", verbs=("Create", "Get", "List"), defaults={"isRetired": False},
    on_create=_distinct_name,
)  # fmt: skip
TAG = ResourceKind(
    "tag", "Tag", SERVICE, f"{TAG_NAMESPACE.path}/{{tagNamespaceId}}/tags", "tagName", ocids.IDENTITY,
    ocid="tagdefinition", name_field="name", parent_param="tagNamespaceId", summary="TagSummary",
    verbs=("Create", "List"), defaults={"isRetired": False, "isCostTracking": False}, on_create=_distinct_name,
    unserved={"validator": "a tag takes any value"},
)  # fmt: skip
POLICY = ResourceKind(
    "policy", "Policy", SERVICE, f"{VERSION}/policies", "policyId", ocids.IDENTITY, plural="Policies",
    name_field="name", unique_in="compartment", verbs=("Create", "Get", "List", "Update", "Delete"),
    on_create=_complete_policy,
    on_update=lambda call, policy, body: _complete_policy(call, body, policy.body["statements"]),
)  # fmt: skip
KINDS = (COMPARTMENT, GROUP, USER, DYNAMIC_GROUP, TAG_NAMESPACE, TAG, POLICY)


def seed_tenancy(store: StateStore) -> None:
    """Adds the resources that every new tenancy has."""
    moment = http.format_rfc3339(http.current_moment())
    _seed_one(
        store, tenancy.TENANCY, "tenancy", tenancy.NAME, "", {"homeRegionKey": tenancy.REGION_KEY.upper()}, moment
    )
    _seed_one(store, tenancy.COMPARTMENT, "compartment", tenancy.COMPARTMENT_NAME, tenancy.TENANCY, {}, moment)
    for group in tenancy.GROUPS:
        _seed_one(store, fixed_ocid("group", group), "group", group, tenancy.TENANCY, {}, moment)
    for user in tenancy.USERS:
        _seed_one(store, user.id, "user", user.profile, tenancy.TENANCY, {"isMfaActivated": False}, moment)
        for group in user.groups:
            identifier = fixed_ocid("groupmembership", f"{user.profile} in {group}")
            if store.get(identifier) is None:
                tenancy.add_membership(store, user.id, fixed_ocid("group", group), identifier)


def _seed_one(
    store: StateStore, identifier: str, kind: str, name: str, compartment: str, more: Json, moment: str
) -> None:
    if store.get(identifier):
        return
    body = {
        "id": identifier,
        "compartmentId": compartment or identifier,
        "name": name,
        "description": f"{name}, made with the local tenancy",
        "timeCreated": moment,
        "freeformTags": {},
        "definedTags": {},
        **more,
    }
    store.add(StoredResource(identifier, kind, compartment or identifier, name, "ACTIVE", body))


def get_compartment(call: ApiCall) -> Reply:
    resource = call.store.get(call.params["compartmentId"])
    if resource is None or resource.kind not in ("compartment", "tenancy"):
        raise not_found("compartment")
    return Reply(200, kinds.render_of_kind(COMPARTMENT, resource), {"etag": resource.etag})


def get_tenancy(call: ApiCall) -> Reply:
    return Reply(200, models.shape_reply(SERVICE, "Tenancy", _require_tenancy(call).body))


def _require_tenancy(call: ApiCall) -> StoredResource:
    resource = call.store.get(call.params["tenancyId"])
    if resource is None or resource.kind != "tenancy":
        raise not_found("tenancy")
    return resource


def list_region_subscriptions(call: ApiCall) -> Reply:
    _require_tenancy(call)
    key = tenancy.REGION_KEY.upper()
    return Reply(200, [{"regionKey": key, "regionName": tenancy.REGION, "status": "READY", "isHomeRegion": True}])


def list_regions(call: ApiCall) -> Reply:
    return Reply(200, [{"key": tenancy.REGION_KEY.upper(), "name": tenancy.REGION}])


def list_availability_domains(call: ApiCall) -> Reply:
    compartment = call.needed("compartmentId")
    kinds.require_compartment(call, compartment)
    return Reply(
        200,
        [
            {"name": name, "id": fixed_ocid("availabilitydomain", name), "compartmentId": compartment}
            for name in tenancy.AVAILABILITY_DOMAINS
        ],
    )


def list_fault_domains(call: ApiCall) -> Reply:
    compartment, domain = call.needed("compartmentId"), call.needed("availabilityDomain")
    if domain not in tenancy.AVAILABILITY_DOMAINS:
        raise not_found(f"availability domain {domain}")
    names = [f"FAULT-DOMAIN-{number}" for number in (1, 2, 3)]
    return Reply(
        200,
        [
            {
                "name": name, "id": fixed_ocid("faultdomain", f"{domain}/{name}"), "compartmentId": compartment,
                "availabilityDomain": domain,
            }
            for name in names
        ],
    )  # fmt: skip


def list_no_tag_defaults(call: ApiCall) -> Reply:
    """An empty list: the local cloud has no tag defaults."""
    kinds.require_compartment(call, call.needed("compartmentId"))
    return Reply(200, [])


def identity_operations() -> list[ApiOperation]:
    rows = [row for kind in KINDS for row in kinds.kind_operations(kind)]
    tenant = f"{VERSION}/tenancies/{{tenancyId}}"
    return [
        *rows,
        ApiOperation("GetCompartment", "GET", f"{VERSION}/compartments/{{compartmentId}}", get_compartment, SERVICE),
        ApiOperation("GetTenancy", "GET", tenant, get_tenancy, SERVICE),
        ApiOperation(
            "ListRegionSubscriptions", "GET", f"{tenant}/regionSubscriptions", list_region_subscriptions, SERVICE
        ),
        ApiOperation("ListRegions", "GET", f"{VERSION}/regions", list_regions, SERVICE),
        ApiOperation(
            "ListAvailabilityDomains", "GET", f"{VERSION}/availabilityDomains", list_availability_domains, SERVICE
        ),
        ApiOperation("ListFaultDomains", "GET", f"{VERSION}/faultDomains", list_fault_domains, SERVICE),
        ApiOperation("ListTagDefaults", "GET", f"{VERSION}/tagDefaults", list_no_tag_defaults, SERVICE),
    ]
