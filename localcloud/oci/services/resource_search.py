# SPDX-License-Identifier: Apache-2.0
"""Search: finds resources of all compartments by their tags, names and states.

A search needs no permission. Its answer has the resources that the caller may list where they are. OCI's index is some
minutes behind the resources, and shows deleted ones for a while; this one is never behind, and shows none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from localcloud.oci import models
from localcloud.oci.authorization import may_list_in
from localcloud.oci.log_query import Reader
from localcloud.oci.operations import ApiCall, ApiOperation
from localcloud.oci.paging import plain_page
from localcloud.oci.references import reference_target
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.http import Json, Reply

SERVICE = "resource_search"
_MODEL = "ResourceSummary"
# Limits how deeply conditions are nested.
_MOST_CONDITIONS = 100
_EVERY_TYPE = "all"
# OCI's name of a type, the kind in the store, and the call that lists it. Private addresses and VNICs belong to runs.
_TYPES: Mapping[str, tuple[str, str]] = {
    "Bucket": ("bucket", "ListBuckets"),
    "Compartment": ("compartment", "ListCompartments"),
    "ContainerImage": ("container-image", "ListContainerImages"),
    "ContainerRepo": ("container-repository", "ListContainerRepositories"),
    "DataScienceComputeTarget": ("compute-target", "ListComputeTargets"),
    "DataScienceJob": ("job", "ListJobs"),
    "DataScienceJobRun": ("job-run", "ListJobRuns"),
    "DataScienceNotebookSession": ("notebook-session", "ListNotebookSessions"),
    "DataScienceProject": ("project", "ListProjects"),
    "DHCPOptions": ("dhcp-options", "ListDhcpOptions"),
    "DynamicResourceGroup": ("dynamic-group", "ListDynamicGroups"),
    "Group": ("group", "ListGroups"),
    "InternetGateway": ("internet-gateway", "ListInternetGateways"),
    "Log": ("log", "ListLogs"),
    "LogGroup": ("log-group", "ListLogGroups"),
    "NatGateway": ("nat-gateway", "ListNatGateways"),
    "NetworkSecurityGroup": ("network-security-group", "ListNetworkSecurityGroups"),
    "Policy": ("policy", "ListPolicies"),
    "RouteTable": ("route-table", "ListRouteTables"),
    "SecurityList": ("security-list", "ListSecurityLists"),
    "ServiceGateway": ("service-gateway", "ListServiceGateways"),
    "Subnet": ("subnet", "ListSubnets"),
    "TagNamespace": ("tag-namespace", "ListTagNamespaces"),
    "User": ("user", "ListUsers"),
    "VaultSecret": ("secret", "ListSecrets"),
    "Vcn": ("vcn", "ListVcns"),
}
_Condition = Callable[[Json], bool]


def search_resources(call: ApiCall) -> Reply:
    details = call.details()
    if details.get("type") != "Structured":
        raise invalid_parameter("the local cloud has no free text search: the type must be Structured")
    types, fits = parse_resource_query(str(details["query"]))
    is_visible = cache(lambda operation, compartment: may_list_in(call, operation, compartment))
    found = []
    for type_name in types:
        kind, operation = _TYPES[type_name]
        for resource in call.store.live(kind):
            compartment = reference_target(call, resource).compartment
            body = {
                "timeCreated": resource.body.get("timeAccepted"),  # a job run has no other time of its beginning
                **resource.body, "resourceType": type_name, "identifier": resource.id, "compartmentId": compartment,
                "displayName": resource.name,
            }  # fmt: skip
            # A bucket has no state.
            body |= {"lifecycleState": resource.shown_state} if resource.shown_state else {}
            summary = models.shape_reply(SERVICE, _MODEL, body)
            if fits(summary) and is_visible(operation, compartment):
                found.append(summary)
    found.sort(key=lambda summary: (summary["timeCreated"], summary["identifier"]), reverse=True)
    items, headers = plain_page(found, call.query, default=500)
    return Reply(200, {"items": items}, headers)


def parse_resource_query(text: str) -> tuple[list[str], _Condition]:
    """`query vcn, subnet resources where freeformTags.key = 'stack' && lifecycleState != 'TERMINATED'`"""
    reader = Reader(text, "The query")
    names = {name.lower(): name for name in _TYPES}
    if not reader.accept_word("query"):
        raise reader.unreadable("it must begin with query")
    types: list[str] = []
    while not types or reader.accept_sign(","):
        word = reader.take("word", "a type of resource")
        if word.lower() not in names and word.lower() != _EVERY_TYPE:
            raise reader.unreadable(f"the local cloud does not search for resources of the type {word[:40]}")
        types += [*_TYPES] if word.lower() == _EVERY_TYPE else [names[word.lower()]]
    if not reader.accept_word("resources"):
        raise reader.expected("resources")
    fits: _Condition = lambda summary: True  # noqa: E731
    if reader.accept_word("where"):
        fits = _Conditions(reader).parse_alternatives()
    if reader.token:
        raise reader.expected("where or its end (the local cloud supports no other clause)")
    return list(dict.fromkeys(types)), fits


class _Conditions:
    """Conditions joined by `&&` and `||`, of which `&&` binds closer, with parentheses."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self._count = reader, 0

    def parse_alternatives(self) -> _Condition:
        parts = [self._parse_conjunction()]
        while self._accept_double("|"):
            parts.append(self._parse_conjunction())
        return lambda summary: any(part(summary) for part in parts)

    def _parse_conjunction(self) -> _Condition:
        parts = [self._parse_condition()]
        while self._accept_double("&"):
            parts.append(self._parse_condition())
        return lambda summary: all(part(summary) for part in parts)

    def _parse_condition(self) -> _Condition:
        reader = self._reader
        self._count += 1
        if self._count > _MOST_CONDITIONS:
            raise reader.unreadable(f"it has more than {_MOST_CONDITIONS} conditions")
        if reader.accept_sign("("):
            inner = self.parse_alternatives()
            reader.expect_sign(")")
            return inner
        field = reader.take("word", "the field of a condition")
        values_of = _FIELDS.get(field.lower())
        if values_of is None:
            raise reader.unreadable(f"unknown field {field[:40]}: one of {', '.join(_FIELDS)}")
        if not (operator := reader.accept_sign("=", "!=")):
            raise reader.expected("= or != (the local cloud supports no other comparison)")
        wanted = reader.take("text", "a quoted text").lower()
        if operator == "=":
            return lambda summary: wanted in values_of(summary)
        return lambda summary: wanted not in values_of(summary)

    def _accept_double(self, sign: str) -> bool:
        if not self._reader.accept_sign(sign):
            return False
        self._reader.expect_sign(sign)
        return True


# Comparisons do not tell upper from lower case. Keys and values of tags are compared one by one.
_FIELDS: Mapping[str, Callable[[Json], list[str]]] = {
    **{
        name.lower(): lambda summary, name=name: [str(summary.get(name, "")).lower()]  # type: ignore[misc]
        for name in ("compartmentId", "displayName", "identifier", "lifecycleState", "resourceType")
    },
    "freeformtags.key": lambda summary: [key.lower() for key in summary["freeformTags"]],
    "freeformtags.value": lambda summary: [str(value).lower() for value in summary["freeformTags"].values()],
}


def search_operations() -> list[ApiOperation]:
    return [ApiOperation("SearchResources", "POST", "/20180409/resources", search_resources, SERVICE, "SearchDetails")]
