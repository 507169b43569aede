# SPDX-License-Identifier: Apache-2.0
"""Reads the current state of a stack in its tenancy.

Only a list shows that a resource is gone: the response to a single read is the same for a missing resource and for one
that the caller may not see.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from components.oci.client.calls import ACCESS_CODES, call_oci, list_oci_pages
from components.oci.client.live_policies import PolicyReader
from components.oci.client.session import Session, sdk_module, session_of_caller
from components.oci.types import SERVED_TYPES
from components.oci.types.oci_resource_type import OciResourceType
from components.platform.calls import call_of
from components.platform.live import LiveQuestion, LiveReading, LiveSide, Reading
from components.platform.review import ReviewedResource

GONE = frozenset({"TERMINATING", "TERMINATED", "DELETING", "DELETED"})
VCN, SUBNET = "oci:Core/vcn:Vcn", "oci:Core/subnet:Subnet"
SECURITY_LIST = "oci:Core/securityList:SecurityList"
GATEWAY = "oci:Core/internetGateway:InternetGateway"
DOMAINS_GROUP = "oci:Identity/domainsDynamicResourceGroup:DomainsDynamicResourceGroup"
BUCKET, JOB = "oci:ObjectStorage/bucket:Bucket", "oci:DataScience/job:Job"
ACCESS_BY_LINK = "oci:ObjectStorage/preauthrequest:Preauthrequest"
JUDGED = {token: row.judged for token, row in SERVED_TYPES.items() if row.judged}
# Fields of rules without an effect: texts for people, and fields that the cloud adds.
_WITHOUT_EFFECT = frozenset({"description", "routeType", "cidrBlock", "serviceName"})
# Fields of jobs whose live value is a change even if the program leaves them unset.
_CHANGES_IF_SET = ("cmd", "commandLineArguments", "entrypoint", "environmentVariables")
_HUMP = re.compile(r"_([a-z0-9])")


def read_oci_live_side(question: LiveQuestion) -> LiveSide:
    session = session_of_caller(question.where)
    return _Reader(question, session).read()


def _is_refused_by_oci(error: BaseException | None) -> bool:
    return (getattr(error, "status", None), getattr(error, "code", None)) in ACCESS_CODES


class _Reader:
    def __init__(self, question: LiveQuestion, session: Session) -> None:
        self._question, self._session = question, session
        self._call = call_of("drift", question.where.tell)
        self._reading = Reading(question.declared, _is_refused_by_oci)
        # The creation time of the stack's oldest part. Older statements of others are not reported.
        self._made: datetime | None = None
        self._lists: dict[tuple[str, ...], list[Any] | None] = {}

    def read(self) -> LiveSide:
        declared = self._question.declared
        for resource in declared.resources:
            row = SERVED_TYPES.get(resource.type)
            if row is not None and row.compared is not None:
                self._resource(resource, row, row.compared)
        if declared.of(DOMAINS_GROUP):
            self._reading.unread("dynamic groups of identity domains are not compared yet")
        self._network()
        self._buckets()
        self._jobs()
        PolicyReader(self._question, self._session, self._reading, self._list, self._made).read()
        return self._reading.side(JUDGED)

    def _resource(self, resource: ReviewedResource, row: OciResourceType, compared: Iterable[str]) -> None:
        place = (str(resource.inputs.get(key)) for key in row.listed_by)
        there = self._list(row.service, row.list_operation, *place)
        if there is None:
            return
        if resource.type == BUCKET:
            live = next((row for row in there if row.name == resource.inputs.get("name")), None)
        else:
            live = next((row for row in there if row.id == resource.id), None)
        if live is None:
            self._reading.record_missing(resource)
            return
        made = getattr(live, "time_created", None)
        self._made = min(filter(None, (self._made, made)), default=None)
        whole = self._whole(resource, row) if row.is_listed_in_part else live
        if whole is not None:
            values = {key: _as_program_inputs(getattr(whole, row.attribute_of(key), None)) for key in compared}
            self._reading.record(
                resource, {key: as_declared_if_equal(resource.inputs.get(key), value) for key, value in values.items()}
            )

    def _whole(self, resource: ReviewedResource, row: OciResourceType) -> Any:
        place = (resource.inputs["namespace"], resource.inputs["name"]) if resource.type == BUCKET else (resource.id,)
        ask = partial(getattr(self._session.client(row.service), f"get_{row.noun}"), *place)
        return self._read_one(f"the {resource.name} of the stack", ask)

    def _list(self, client: str, listing: str, *within: str, **more: str) -> list[Any] | None:
        """The resources of a kind in a place, read once. None if the caller may not list them, which is recorded."""
        key = (client, listing, *within, *more.values())
        if key not in self._lists:
            words = listing.removeprefix("list_").replace("_", " ")

            def page(**options: Any) -> Any:
                ask = partial(getattr(self._session.client(client), listing), *within, **more, **options)
                answer = call_oci(self._call, f"List the {words}", ask)
                # Some lists have their rows one level deeper.
                return answer if isinstance(answer.data, list) else _Page(answer.data.items, answer.headers)

            rows = self._reading.allowed(f"the {words}", lambda: list(list_oci_pages(page)))
            self._lists[key] = rows and [row for row in rows if getattr(row, "lifecycle_state", None) not in GONE]
        return self._lists[key]

    def _network(self) -> None:
        """Other resources that give access to the nodes: further lists of their subnet, gateways, and neighbouring
        subnets."""
        declared = self._question.declared
        ours = {one.id for one in declared.of(SECURITY_LIST)}
        for subnet in declared.of(SUBNET):
            compartment = str(subnet.inputs.get("compartmentId"))
            for row in self._list("core", "list_subnets", compartment) or ():
                if row.id == subnet.id:
                    self._further_lists(subnet, [one for one in row.security_list_ids or () if one not in ours])
        for vcn in declared.of(VCN):
            compartment = str(vcn.inputs.get("compartmentId"))
            for row in self._list("core", "list_internet_gateways", compartment, vcn_id=vcn.id) or ():
                inputs = {"vcnId": vcn.id, "enabled": row.is_enabled, "displayName": row.display_name}
                self._reading.add(GATEWAY, row.id, inputs, f"internet gateway {row.display_name} in the stack's VCN")
            known = {one.id for one in declared.of(SUBNET)}
            for row in self._list("core", "list_subnets", compartment) or ():
                if row.vcn_id == vcn.id and row.id not in known:
                    words = f"subnet {row.display_name} ({row.cidr_block}) in the stack's VCN"
                    self._reading.add("oci:Core/otherSubnet:OtherSubnet", row.id, {"cidrBlock": row.cidr_block}, words)

    def _further_lists(self, subnet: ReviewedResource, lists: Sequence[str]) -> None:
        for one in lists:
            what = f"the security list {one} of the nodes' subnet"
            row = self._read_one(what, partial(self._session.client("core").get_security_list, one))
            if row is not None:
                kind = SERVED_TYPES[SECURITY_LIST]
                inputs = {
                    key: [as_rule(rule) for rule in _as_program_inputs(getattr(row, kind.attribute_of(key))) or ()]
                    for key in kind.compared or ()
                }
                words = f"security list {row.display_name} of the nodes' subnet"
                self._reading.add(SECURITY_LIST, one, {"vcnId": row.vcn_id, **inputs}, words, subnet.parent)

    def _read_one(self, what: str, ask: Callable[[], Any]) -> Any:
        return self._reading.allowed(what, lambda: call_oci(self._call, f"Read {what}", ask).data)

    def _buckets(self) -> None:
        """Pre-authenticated requests: whoever has such a link needs no policy."""
        for bucket in self._question.declared.of(BUCKET):
            place = (str(bucket.inputs.get("namespace")), str(bucket.inputs.get("name")))
            for row in self._list("object_storage", "list_preauthenticated_requests", *place) or ():
                inputs = {"bucket": place[1], "accessType": row.access_type, "object": row.object_name}
                words = (
                    f"pre-authenticated request {row.name} on the bucket {place[1]}: {row.access_type}, "
                    f"for whoever has its address, until {row.time_expires:%Y-%m-%d}"
                )
                self._reading.add(ACCESS_BY_LINK, row.id, inputs, words)

    def _jobs(self) -> None:
        """Undeclared jobs with the stack's tag."""
        declared = self._question.declared
        ours = {one.id for one in declared.of(JOB)}
        for compartment in sorted({str(one.inputs.get("compartmentId")) for one in declared.of(JOB)}):
            for row in self._list("data_science", "list_jobs", compartment) or ():
                if row.id not in ours and (row.freeform_tags or {}).get("stack") == declared.stack:
                    self._reading.add(JOB, row.id, {"displayName": row.display_name}, f"job {row.display_name}")


@dataclass(frozen=True)
class _Page:
    data: Iterable[Any]
    headers: Mapping[str, str]


def _as_program_inputs(value: Any) -> Any:
    """A value of the SDK in the form of the program's inputs."""
    return _with_camel_case_keys(sdk_module("util").to_dict(value)) if value is not None else None


def _with_camel_case_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        rows = (
            (_HUMP.sub(lambda found: found[1].upper(), key), _with_camel_case_keys(item)) for key, item in value.items()
        )
        return {key: item for key, item in rows if item is not None}
    return [_with_camel_case_keys(item) for item in value] if isinstance(value, list | tuple) else value


def as_declared_if_equal(declared: Any, live: Any) -> Any:
    """The live value, or the declared one if both mean the same, such as rules in another order, or a number as
    text."""
    if isinstance(live, list) and live and all(isinstance(one, Mapping) for one in live):
        live = [as_rule(one) for one in live]
        given = declared if isinstance(declared, list) else []
        return declared if _sorted_rules(live) == _sorted_rules(as_rule(one) for one in given) else live
    return declared if _means_same(declared, live) else live


def as_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """A rule of a list as Pulumi has it: its ports are the destination ports."""
    renamed = {("stateless" if key == "isStateless" else key): value for key, value in rule.items()}
    for key in ("tcpOptions", "udpOptions"):
        if isinstance(renamed.get(key), Mapping):
            options = dict(renamed[key])
            renamed[key] = {**options.pop("destinationPortRange", {}), **options}
    return renamed


def _sorted_rules(rules: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(_rule_with_effect(rule), sort_keys=True) for rule in rules)


def _rule_with_effect(value: Any) -> Any:
    """A rule without fields that have no meaning. Numbers are texts, because some states have them so."""
    if isinstance(value, Mapping):
        rows = {key: _rule_with_effect(item) for key, item in value.items() if key not in _WITHOUT_EFFECT}
        return {key: item for key, item in rows.items() if item not in ("", "false", {}, [])}
    if isinstance(value, list):
        return [_rule_with_effect(item) for item in value]
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _means_same(declared: Any, live: Any) -> bool:
    """Whether the declared value equals the live one. The cloud fills in missing fields, and some of those matter."""
    if isinstance(declared, Mapping) and isinstance(live, Mapping):
        added = any(live.get(key) and key not in declared for key in _CHANGES_IF_SET)
        return not added and all(_means_same(value, live.get(key)) for key, value in declared.items())
    if isinstance(declared, list) and isinstance(live, list):
        return sorted(map(str, declared)) == sorted(map(str, live))
    if declared is None or live is None:
        return not declared and not live
    return str(declared).lower() == str(live).lower()


LIVE_READING = LiveReading(read_oci_live_side)
