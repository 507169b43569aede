# SPDX-License-Identifier: Apache-2.0
"""Reads existing resources of a tenancy for a new stack file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from catalog.frameworks import framework_names
from components.oci.client.calls import call_oci, list_oci_pages
from components.oci.client.live import GONE
from components.oci.client.session import Session, compartment_of_caller, session_of_caller
from components.oci.types import SERVED_TYPES
from components.oci.types.oci_resource_type import OciResourceType
from components.platform.calls import ProviderError, call_of
from components.platform.client import Where
from components.platform.existing import ExistingError, ExistingResources, FoundIds, FoundResources, free_block
from components.platform.review import ReviewedResource, Snapshot

_OCID = re.compile(r"ocid1\.([a-z0-9]+)\.[a-z0-9-]*\.[a-z0-9-]*\.{1,2}[a-z0-9.]+")
# A bucket has no OCID that its API takes: this is Pulumi's id of one.
_BUCKET = re.compile(r"n/([^/]+)/b/([^/]+)")
_LOG, _LOG_GROUP = "oci:Logging/log:Log", "oci:Logging/logGroup:LogGroup"
_BUCKET_TYPE = "oci:ObjectStorage/bucket:Bucket"
_VCN_TYPE = "oci:Core/vcn:Vcn"
# Their runs belong to them, and code is not read back: `up` makes them.
_NOT_IMPORTED = frozenset({"oci:DataScience/job:Job", "oci:ObjectStorage/storageObject:StorageObject"})


class OciExistingResources(ExistingResources):
    def read(self, ids: Sequence[str], where: Where, manages: bool) -> FoundResources:
        reader = _Reader(where, manages)
        # A subnet that is named says more than its VCN.
        for one in sorted(ids, key=lambda one: ".vcn." in one):
            reader.add(one)
        return reader.found

    def find_ids(self, snapshot: Snapshot, ids: Sequence[str], where: Where) -> FoundIds:
        return _IdFinder(where, ids).find(snapshot)


class _Cloud:
    """Calls of the caller's tenancy."""

    def __init__(self, where: Where) -> None:
        self.session: Session = session_of_caller(where)
        self._call = call_of("init", where.tell)
        self.compartment = compartment_of_caller(where)

    def get(self, what: str, client: str, operation: str, *place: str) -> Any:
        ask = partial(getattr(self.session.client(client), operation), *place)
        return call_oci(self._call, f"Read {what}", ask).data

    def rows(self, client: str, operation: str, *place: str, **more: Any) -> list[Any]:
        def page(**options: Any) -> Any:
            ask = partial(getattr(self.session.client(client), operation), *place, **more, **options)
            return call_oci(self._call, f"Call {operation}", ask)

        return [row for row in list_oci_pages(page) if getattr(row, "lifecycle_state", None) not in GONE]

    @property
    def namespace(self) -> str:
        return str(self.get("the namespace of Object Storage", "object_storage", "get_namespace"))


class _Reader:
    def __init__(self, where: Where, manages: bool) -> None:
        self._cloud, self._manages = _Cloud(where), manages
        self.found = FoundResources()

    def add(self, ocid: str) -> None:
        if bucket := _BUCKET.fullmatch(ocid):
            self._bucket(bucket[2])
            return
        matched = _OCID.fullmatch(ocid)
        reads: Mapping[str, Callable[[str], None]] = {
            "bucket": self._bucket_by_ocid, "containerrepo": self._repository, "datascienceproject": self._project,
            "dynamicgroup": self._dynamic_group, "log": self._log, "loggroup": self._log_group, "subnet": self._subnet,
            "vcn": self._vcn,
        }  # fmt: skip
        if matched is None or matched[1] not in reads:
            kind = f"of the kind {matched[1]}" if matched else "not an OCID"
            names = ", ".join(sorted(reads))
            raise ExistingError(
                f"`{ocid[:100]}` is {kind}.", f"--existing reads OCIDs of {names}, and n/NAMESPACE/b/NAME."
            )
        try:
            reads[matched[1]](ocid)
        except ProviderError as error:
            if getattr(error.__cause__, "status", None) != 404:
                raise
            raise ExistingError(
                f"{ocid} is not in the tenancy {self._cloud.session.tenancy}, or you may not read it.",
                "Name a resource of this tenancy, or another profile with --profile.",
            ) from error

    def _bucket(self, name: str) -> None:
        bucket = self._cloud.get(f"the bucket {name}", "object_storage", "get_bucket", self._cloud.namespace, name)
        keys: dict[str, Any] = {"existing": bucket.name}
        if self._manages:
            versioning = {"Enabled": True, "Suspended": "suspended"}.get(bucket.versioning, False)
            keys = {"name": bucket.name, **({} if versioning is True else {"versioning": versioning})}
        self.found.add("trainyard:bucket", keys, bucket.freeform_tags)

    def _bucket_by_ocid(self, ocid: str) -> None:
        namespace = self._cloud.namespace
        for row in self._cloud.rows("object_storage", "list_buckets", namespace, self._cloud.compartment):
            bucket = self._cloud.get(f"the bucket {row.name}", "object_storage", "get_bucket", namespace, row.name)
            if bucket.id == ocid:
                self._bucket(bucket.name)
                return
        raise ExistingError(
            f"No bucket of the compartment {self._cloud.compartment} has the OCID {ocid}.",
            "Name it as n/NAMESPACE/b/NAME, or name its compartment with --set compartment=OCID.",
        )

    def _repository(self, ocid: str) -> None:
        row = self._cloud.get("the repository", "artifacts", "get_container_repository", ocid)
        keys: dict[str, Any] = {"existing": row.display_name}
        if self._manages:
            keys = {"repository": row.display_name, **({"immutable": True} if row.is_immutable else {})}
        self.found.add("trainyard:registry", keys, row.freeform_tags)

    def _project(self, ocid: str) -> None:
        row = self._cloud.get("the project", "data_science", "get_project", ocid)
        keys = {"name": row.display_name} if self._manages else {"existing": ocid}
        self.found.add("trainyard:project", keys, row.freeform_tags)

    def _dynamic_group(self, ocid: str) -> None:
        row = self._cloud.get("the dynamic group", "identity", "get_dynamic_group", ocid)
        if self._manages:
            self.found.add("trainyard:access", {}, row.freeform_tags)
        else:
            self.found.add("trainyard:access", {"existing": True, "runs": row.name}, row.freeform_tags)
            self.found.remarks.append(
                f"the policies of {row.name} are not made by the stack: `trainyard access` prints the statements that "
                "it needs"
            )

    def _log_group(self, ocid: str) -> None:
        row = self._cloud.get("the log group", "logging", "get_log_group", ocid)
        if not self._manages:
            self.found.add("trainyard:logs", {"existing": {"group": ocid}}, row.freeform_tags)
            return
        logs = self._cloud.rows("logging", "list_logs", ocid)
        days = {one.retention_duration for one in logs if one.log_type == "CUSTOM" and one.retention_duration}
        self.found.add("trainyard:logs", {"retentionDays": days.pop()} if len(days) == 1 else {}, row.freeform_tags)

    def _log(self, ocid: str) -> None:
        for group in self._cloud.rows("logging", "list_log_groups", self._cloud.compartment):
            if any(log.id == ocid for log in self._cloud.rows("logging", "list_logs", group.id)):
                if self._manages:
                    self._log_group(group.id)
                else:
                    self.found.add("trainyard:logs", {"existing": {"group": group.id, "log": ocid}})
                return
        raise ExistingError(
            f"No log group of the compartment {self._cloud.compartment} has the log {ocid}.",
            "Name its compartment with --set compartment=OCID.",
        )

    def _subnet(self, ocid: str) -> None:
        row = self._cloud.get("the subnet", "core", "get_subnet", ocid)
        if self._manages:
            self._vcn(row.vcn_id)
            self.found.add("trainyard:network", {"subnetCidr": row.cidr_block}, row.freeform_tags)
            return
        elsewhere = {} if row.compartment_id == self._cloud.compartment else {"compartment": row.compartment_id}
        self.found.keys.pop("trainyard:network", None)
        self.found.add("trainyard:network", {"subnet": ocid, **elsewhere}, row.freeform_tags)
        if not row.prohibit_public_ip_on_vnic:
            self.found.remarks.append(f"the subnet {row.display_name} is public: training needs a private one")
        self.found.remarks.append(f"`trainyard plan` prints the ports that {row.display_name} has to let through")

    def _vcn(self, ocid: str) -> None:
        row = self._cloud.get("the VCN", "core", "get_vcn", ocid)
        subnets = [one for one in self._cloud.rows("core", "list_subnets", row.compartment_id) if one.vcn_id == ocid]
        if self._manages:
            keys: dict[str, Any] = {"cidr": row.cidr_blocks[0]}
            if len(subnets) == 1:
                keys["subnetCidr"] = subnets[0].cidr_block
            if any(one.vcn_id == ocid for one in self._cloud.rows("core", "list_nat_gateways", row.compartment_id)):
                keys["nat"] = True
            if frameworks := self._frameworks(ocid, row.compartment_id):
                keys["frameworks"] = frameworks
            self.found.add("trainyard:network", keys, row.freeform_tags)
            return
        if "subnet" in self.found.keys.get("trainyard:network", {}):
            return
        free = free_block(row.cidr_blocks, [one.cidr_block for one in subnets])
        if free is None:
            raise ExistingError(f"The VCN {row.display_name} has no room for a subnet.", "Name a subnet of it instead.")
        elsewhere = {} if row.compartment_id == self._cloud.compartment else {"compartment": row.compartment_id}
        keys = {"vcn": ocid, "subnetCidr": free, "routeTable": row.default_route_table_id, **elsewhere}
        self.found.add("trainyard:network", keys, row.freeform_tags)
        self.found.remarks.append(
            f"the new subnet has the default route table of {row.display_name}: it needs a route to Oracle's services"
        )

    def _frameworks(self, vcn: str, compartment: str) -> list[str]:
        """The frameworks that the rules of trainyard's own security lists name as their reasons."""
        rules = (
            rule
            for row in self._cloud.rows("core", "list_security_lists", compartment)
            if row.vcn_id == vcn and (row.freeform_tags or {}).get("managed-by") == "trainyard"
            for rule in row.ingress_security_rules
        )
        reasons = {part.partition(":")[0].strip() for rule in rules for part in (rule.description or "").split(";")}
        return sorted(reasons & {*framework_names()})


class _IdFinder:
    """Finds what a program would make by its names, inside its compartment, VCN or log group."""

    def __init__(self, where: Where, ids: Sequence[str]) -> None:
        self._cloud = _Cloud(where)
        self._named = ids

    def find(self, snapshot: Snapshot) -> FoundIds:
        ids, missing = dict[str, str](), list[str]()
        vcn = group = ""
        order = sorted(snapshot.resources, key=lambda one: (one.type not in (_VCN_TYPE, _LOG_GROUP), one.urn))
        for resource in order:
            row = SERVED_TYPES.get(resource.type)
            if row is None or not resource.custom or resource.type in _NOT_IMPORTED:
                continue
            found = self._id_of(resource, row, vcn, group)
            if not found:
                missing.append(f"{row.words} {resource.inputs.get('displayName') or resource.inputs.get('name')}")
                continue
            vcn = found if resource.type == _VCN_TYPE else vcn
            group = found if resource.type == _LOG_GROUP else group
            ids[resource.urn] = f"logGroupId/{group}/logId/{found}" if resource.type == _LOG else found
        return FoundIds(ids, tuple(missing), "pulumi_oci")

    def _id_of(self, resource: ReviewedResource, row: OciResourceType, vcn: str, group: str) -> str:
        inputs = resource.inputs
        if resource.type == _BUCKET_TYPE:
            namespace = self._cloud.namespace
            rows = self._cloud.rows("object_storage", "list_buckets", namespace, str(inputs["compartmentId"]))
            return f"n/{namespace}/b/{inputs['name']}" if any(one.name == inputs["name"] for one in rows) else ""
        if (resource.type == _LOG and not group) or ("vcnId" in inputs and not vcn):
            return ""
        place = [group] if resource.type == _LOG else [str(inputs[key]) for key in row.listed_by]
        key = "displayName" if "displayName" in inputs else "name"
        rows = [
            one
            for one in self._cloud.rows(row.service, row.list_operation, *place)
            if "vcnId" not in inputs or one.vcn_id == vcn
        ]
        chosen = [one for one in rows if one.id in self._named] or [
            one for one in rows if getattr(one, row.attribute_of(key)) == inputs[key]
        ]
        # Two of one name: nobody knows which is meant.
        return str(chosen[0].id) if len(chosen) == 1 else ""


EXISTING = OciExistingResources()
