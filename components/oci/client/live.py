# SPDX-License-Identifier: Apache-2.0
"""Reads the current state of a stack in its tenancy.

Only a list shows that a resource is gone: the response to a single read is the same for a missing resource and for one
that the caller may not see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Any

from components.oci.client.calls import ACCESS_CODES, call_oci, list_oci_pages, rows_of_answer
from components.oci.client.live_beside import read_beside_in_oci
from components.oci.client.live_members import MemberReader
from components.oci.client.live_policies import PolicyReader
from components.oci.client.live_values import as_declared_if_equal, as_program_inputs, as_rule
from components.oci.client.session import Session, session_of_caller
from components.oci.types import SERVED_TYPES
from components.oci.types.oci_resource_type import OciResourceType
from components.platform.calls import ProviderError, call_of
from components.platform.live import LiveQuestion, LiveReading, LiveSide, Reading
from components.platform.review import ReviewedResource

GONE = frozenset({"TERMINATING", "TERMINATED", "DELETING", "DELETED"})
SUBNET = "oci:Core/subnet:Subnet"
SECURITY_LIST = "oci:Core/securityList:SecurityList"
DOMAINS_GROUP = "oci:Identity/domainsDynamicResourceGroup:DomainsDynamicResourceGroup"
BUCKET, JOB = "oci:ObjectStorage/bucket:Bucket", "oci:DataScience/job:Job"
# Errors where there is nothing: no such policy, or a local cloud without such resources.
_NOTHING_THERE = frozenset({"LifecyclePolicyNotFound", "MethodNotImplemented"})
# Objects are the content of a bucket, which runs change.
READ_TYPES = frozenset({
    *(token for token, row in SERVED_TYPES.items() if row.compared is not None), DOMAINS_GROUP,
    "oci:ObjectStorage/storageObject:StorageObject",
})  # fmt: skip
JUDGED = {token: row.judged for token, row in SERVED_TYPES.items() if row.judged}


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
        self._reading.name_unread_types(READ_TYPES)
        self._further_lists()
        read_beside_in_oci(declared, self._reading, self._list)
        self._jobs()
        PolicyReader(self._question, self._session, self._reading, self._list, self._made).read()
        MemberReader(self._question, self._session.tenancy, self._reading, self._list, self._user).read(self._made)
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
            self._elsewhere(resource, row)
            return
        made = getattr(live, "time_created", None)
        self._made = min(filter(None, (self._made, made)), default=None)
        whole = self._whole(resource, row) if row.is_listed_in_part else live
        if whole is not None:
            keys = (*compared, row.tags) if resource.inputs.get(row.tags) else compared
            values = {key: as_program_inputs(getattr(whole, row.attribute_of(key), None)) for key in keys}
            self._reading.record(
                resource, {key: as_declared_if_equal(resource.inputs.get(key), value) for key, value in values.items()}
            )

    def _elsewhere(self, resource: ReviewedResource, row: OciResourceType) -> None:
        """Records a resource that is not where the stack made it: somebody moved or deleted it."""
        try:
            moved = call_oci(self._call, f"Read the {row.words} {resource.name}", self._get(resource, row)).data
        except ProviderError as error:
            if getattr(error.__cause__, "status", None) != HTTPStatus.NOT_FOUND:
                raise
            moved = None
        if moved is None or getattr(moved, "lifecycle_state", None) in GONE or not hasattr(moved, "compartment_id"):
            self._reading.record_missing(resource)
        else:
            self._reading.record(resource, {"compartmentId": moved.compartment_id})

    def _whole(self, resource: ReviewedResource, row: OciResourceType) -> Any:
        return self._read_one(f"the {resource.name} of the stack", self._get(resource, row))

    def _get(self, resource: ReviewedResource, row: OciResourceType) -> Callable[[], Any]:
        """The call that reads it. Buckets go by their names."""
        place = [str(resource.inputs.get(key)) for key in row.within] + [resource.id]
        if resource.type == BUCKET:
            place = [str(resource.inputs["namespace"]), str(resource.inputs["name"])]
        return partial(getattr(self._session.client(row.service), f"get_{row.noun}"), *place)

    def _list(self, client: str, listing: str, *within: str, **more: str) -> list[Any] | None:
        """The resources of a kind in a place, read once. None if the caller may not list them, which is recorded."""
        key = (client, listing, *within, *more.values())
        if key not in self._lists:
            words = listing.partition("_")[2].replace("_", " ")

            def page(**options: Any) -> Any:
                ask = partial(getattr(self._session.client(client), listing), *within, **more, **options)
                return call_oci(self._call, f"List the {words}", ask)

            def read() -> list[Any]:
                try:
                    return list(list_oci_pages(page) if listing.startswith("list_") else rows_of_answer(page()))
                except ProviderError as error:
                    if getattr(error.__cause__, "code", None) in _NOTHING_THERE:
                        return []
                    raise

            rows = self._reading.allowed(f"the {words}", read)
            self._lists[key] = rows and [row for row in rows if getattr(row, "lifecycle_state", None) not in GONE]
        return self._lists[key]

    def _further_lists(self) -> None:
        """Security lists of others on the stack's subnets."""
        declared = self._question.declared
        ours = {one.id for one in declared.of(SECURITY_LIST)}
        for subnet in declared.of(SUBNET):
            for row in self._list("core", "list_subnets", str(subnet.inputs.get("compartmentId"))) or ():
                if row.id == subnet.id:
                    self._lists_of_subnet(subnet, [one for one in row.security_list_ids or () if one not in ours])

    def _lists_of_subnet(self, subnet: ReviewedResource, lists: Sequence[str]) -> None:
        for one in lists:
            what = f"the security list {one} of the nodes' subnet"
            row = self._read_one(what, partial(self._session.client("core").get_security_list, one))
            if row is not None:
                kind = SERVED_TYPES[SECURITY_LIST]
                inputs = {
                    key: [as_rule(rule) for rule in as_program_inputs(getattr(row, kind.attribute_of(key))) or ()]
                    for key in kind.compared or ()
                }
                words = f"security list {row.display_name} of the nodes' subnet"
                self._reading.add(SECURITY_LIST, one, {"vcnId": row.vcn_id, **inputs}, words, subnet.parent)

    def _user(self, ocid: str) -> Any:
        return self._read_one(f"the user {ocid}", partial(self._session.client("identity").get_user, ocid))

    def _read_one(self, what: str, ask: Callable[[], Any]) -> Any:
        return self._reading.allowed(what, lambda: call_oci(self._call, f"Read {what}", ask).data)

    def _jobs(self) -> None:
        """Undeclared jobs with the stack's tag."""
        declared = self._question.declared
        ours = {one.id for one in declared.of(JOB)}
        for compartment in sorted({str(one.inputs.get("compartmentId")) for one in declared.of(JOB)}):
            for row in self._list("data_science", "list_jobs", compartment) or ():
                if row.id not in ours and (row.freeform_tags or {}).get("stack") == declared.stack:
                    self._reading.add(JOB, row.id, {"displayName": row.display_name}, f"job {row.display_name}")


LIVE_READING = LiveReading(read_oci_live_side)
