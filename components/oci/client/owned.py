# SPDX-License-Identifier: Apache-2.0
"""Finds what trainyard made in a tenancy by OCI's Search, and deletes it (`trainyard drift --orphans`).

Search answers with what the caller may list, and says nothing of the rest. So the caller's lists in the stack's
compartment are tried too: what cannot be listed there is named.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from catalog.machines import Price, price_of, price_with_block_storage
from components.oci.client.buckets import empty_bucket
from components.oci.client.calls import ACCESS_CODES, call_oci, list_oci_pages, read_from_oci_if_exists
from components.oci.client.compartment_runs import CompartmentRuns
from components.oci.client.session import Session, compartment_of_caller, sdk_module, session_of_caller
from components.oci.types import SERVED_TYPES
from components.oci.types.oci_resource_type import OciResourceType
from components.platform.calls import Call, ProviderError, call_of, read_at_once
from components.platform.owned import (
    FREE,
    MANAGED_BY,
    OwnedQuestion,
    OwnedReading,
    OwnedResource,
    OwnedResources,
    RemovalRefusedError,
)
from components.platform.runs import TERMINAL
from schemas.name_suggestions import and_list, count_noun

JOB_RUN, JOB = "oci:DataScience/jobRun:JobRun", "oci:DataScience/job:Job"
BUCKET = "oci:ObjectStorage/bucket:Bucket"
REPOSITORY = "oci:Artifacts/containerRepository:ContainerRepository"
LOG, SECRET = "oci:Logging/log:Log", "oci:Vault/secret:Secret"
DYNAMIC_GROUP = "oci:Identity/dynamicGroup:DynamicGroup"
COMPUTE_TARGET = "oci:DataScience/computeTarget:ComputeTarget"
_GONE = frozenset({"TERMINATING", "TERMINATED", "DELETING", "DELETED", "PENDING_DELETION", "SCHEDULING_DELETION"})
_IN_USE = frozenset({"Conflict", "IncorrectState", "BucketNotEmpty"})
# Objects that `up` and launchers write. All others are the training's.
_OWN_FOLDER = ".trainyard/"
_MOST_COUNTED = 1000
_AT_ONCE = 8
_SECONDS = 1200.0
_BY_SIZE = Price(0.0, "paid by its size")
_QUERY = f"query all resources where (freeformTags.key = '{MANAGED_BY}' && freeformTags.value = 'trainyard')"
# By the second part of an OCID.
_TOKENS = {row.ocid_kind: token for token, row in SERVED_TYPES.items() if row.tags} | {"datasciencejobrun": JOB_RUN}


def find_owned_in_oci(question: OwnedQuestion) -> OwnedReading:
    reader = _OwnedReader(question, session_of_caller(question.where))
    found = tuple(reader.read())
    return OwnedReading(found, tuple(reader.unlisted()))


@dataclass
class _OwnedReader:
    question: OwnedQuestion
    session: Session

    @cached_property
    def _call(self) -> Call:
        return call_of("drift", self.question.where.tell)

    @cached_property
    def _compartment(self) -> str:
        return compartment_of_caller(self.question.where) or self.session.tenancy

    def read(self) -> Iterator[OwnedResource]:
        hits = [hit for hit in self._search() if self._is_wanted(hit)]
        runs = [hit for hit in hits if _token_of(hit) == JOB_RUN]
        rest = [hit for hit in hits if _token_of(hit) != JOB_RUN]
        yield from read_at_once(self._described, rest, _AT_ONCE)
        yield from self._job_runs(runs, frozenset(hit.identifier for hit in rest))

    def unlisted(self) -> Iterator[str]:
        """What the caller may not list in the stack's compartment: Search does not show it."""

        def why_not(row: OciResourceType) -> str:
            place = self.session.tenancy if row.token == DYNAMIC_GROUP else self._compartment
            where = {"compartment_id": place, "limit": 1}
            if "namespace" in row.listed_by:
                where["namespace_name"] = self._namespace
            try:
                ask = partial(getattr(self.session.client(row.service), row.list_operation), **where)
                call_oci(self._call, f"List each {row.words}", ask)
            except ProviderError as error:
                if (getattr(error.__cause__, "status", None), getattr(error.__cause__, "code", None)) in ACCESS_CODES:
                    return str(getattr(error.__cause__, "message", "")) or "no access"
                raise
            return ""

        # Logs are listed by their groups, whose list takes the same permission.
        rows = [row for row in SERVED_TYPES.values() if row.tags and "logGroupId" not in row.listed_by]
        refused = {row.words: why for row, why in zip(rows, read_at_once(why_not, rows, _AT_ONCE), strict=True) if why}
        if refused:
            yield (
                f"{and_list(sorted(refused))} in the compartment {self._compartment}: the caller may not list them, so "
                "Search does not show them"
            )

    @cached_property
    def _namespace(self) -> str:
        client = self.session.client("object_storage")
        return str(call_oci(self._call, "Read the namespace", lambda: client.get_namespace()).data)

    def _search(self) -> Iterator[Any]:
        models, client = sdk_module("resource_search.models"), self.session.client("resource_search")
        details = models.StructuredSearchDetails(query=_QUERY)

        def page(**options: Any) -> Any:
            answer = call_oci(self._call, "Search for resources", lambda: client.search_resources(details, **options))
            return _Page(answer.data.items, answer.headers)

        return list_oci_pages(page)

    def _is_wanted(self, hit: Any) -> bool:
        place = self.question.where.place
        state = str(hit.lifecycle_state or "").upper()
        return (
            self.question.wants(hit.freeform_tags or {}) and state not in _GONE and place in (None, hit.compartment_id)
        )

    def _described(self, hit: Any) -> OwnedResource:
        token = _token_of(hit)
        row = SERVED_TYPES.get(token)
        name = hit.display_name or hit.identifier
        ids: tuple[str, ...] = (hit.identifier,)
        cost, content = FREE, ""
        if token == BUCKET:
            ids = (f"n/{self._namespace}/b/{name}", hit.identifier)
            cost, content = _BY_SIZE, self._objects(name)
        elif token == REPOSITORY:
            cost, content = _BY_SIZE, self._images(hit.identifier)
        elif token == COMPUTE_TARGET:
            cost = self._price_of_target(hit.identifier)
        elif token == LOG:
            cost = _BY_SIZE
        return OwnedResource(
            token if row else "", ids, f"{row.words if row else hit.resource_type} {name}", hit.freeform_tags,
            hit.compartment_id, hit.time_created, _owner_of(hit), cost, content=content,
        )  # fmt: skip

    def _job_runs(self, hits: Sequence[Any], owned: frozenset[str]) -> Iterator[OwnedResource]:
        """Runs that have not ended, and records of runs without a found job: other records go with their jobs."""
        listed: dict[str, Any] = {}
        for compartment in sorted({hit.compartment_id for hit in hits}):
            runs = CompartmentRuns(self.session, compartment)
            listed |= {run.id: run for run in runs.listed(self._call)}

        def described(hit: Any) -> OwnedResource | None:
            run = listed.get(hit.identifier)
            if run is None or run.lifecycle_state in _GONE:
                return None
            is_over = run.lifecycle_state in TERMINAL
            if is_over and run.job_id in owned:
                return None
            cost = FREE if is_over else self._price_of_run(run)
            words = f"job run {run.display_name or run.id} ({run.lifecycle_state})"
            return OwnedResource(
                JOB_RUN, (run.id,), words, hit.freeform_tags, hit.compartment_id, run.time_accepted, _owner_of(hit),
                cost, run.job_id,
            )  # fmt: skip

        yield from (found for found in read_at_once(described, hits, _AT_ONCE) if found is not None)

    def _price_of_run(self, run: Any) -> Price:
        client = self.session.client("data_science")
        whole = read_from_oci_if_exists(self._call, "Read the job run", partial(client.get_job_run, run.id))
        node = getattr(whole, "job_infrastructure_configuration_details", None)
        shape = getattr(node, "shape_name", None)
        if not shape:  # a run of node groups, or on a compute target
            return Price()
        config, prices = getattr(node, "job_shape_config_details", None), self.question.prices
        machine = price_of(shape, prices, getattr(config, "ocpus", None), getattr(config, "memory_in_gbs", None))
        return price_with_block_storage(machine, getattr(node, "block_storage_size_in_gbs", None) or 0, prices)

    def _price_of_target(self, target: str) -> Price:
        client = self.session.client("data_science")
        whole = read_from_oci_if_exists(
            self._call, "Read the compute target", partial(client.get_compute_target, target)
        )
        machines = getattr(whole, "compute_configuration_details", None)
        instance: Any = getattr(machines, "instance_configuration", None)
        number = getattr(getattr(machines, "scaling_policy", None), "instance_count", None)
        if not getattr(instance, "instance_shape", None) or number is None:
            return Price()
        size = getattr(instance, "instance_shape_details", None)
        ocpus, memory = getattr(size, "ocpus", None), getattr(size, "memory_in_gbs", None)
        price = price_of(instance.instance_shape, self.question.prices, ocpus, memory)
        return Price(price.of(number), price.source)

    def _objects(self, bucket: str) -> str:
        """The training's own objects in a bucket: all that is not in the folder of `up` and of launchers."""
        client = self.session.client("object_storage")
        listed = partial(client.list_object_versions, self._namespace, bucket, limit=_MOST_COUNTED)

        def page(**options: Any) -> Any:
            answer = call_oci(
                self._call, f"Look into the bucket {bucket}", partial(listed, **{**options, "limit": 1000})
            )
            return _Page(answer.data.items, answer.headers)

        names = {item.name for item in list_oci_pages(page) if not item.name.startswith(_OWN_FOLDER)}
        return count_noun(len(names), "object") if names else ""

    def _images(self, repository: str) -> str:
        client = self.session.client("artifacts")
        ask = partial(client.get_container_repository, repository)
        found = read_from_oci_if_exists(self._call, "Look into the repository", ask)
        return count_noun(found.image_count, "image") if found is not None and found.image_count else ""


@dataclass(frozen=True)
class _Page:
    data: Sequence[Any]
    headers: Mapping[str, str]


def _token_of(hit: Any) -> str:
    return _TOKENS.get(hit.identifier.split(".")[1] if hit.identifier.count(".") > 1 else "", "")


def _owner_of(hit: Any) -> str:
    """Who made it, where the tenancy has the tags by which OCI says so, else the team of its tags."""
    made_by = ((hit.defined_tags or {}).get("Oracle-Tags") or {}).get("CreatedBy")
    return str(made_by or (hit.freeform_tags or {}).get("team") or "")


@dataclass
class OwnedDeleter:
    """Deletes one resource, and waits until it is gone."""

    session: Session
    _home: list[str] = field(default_factory=list)

    def delete(self, call: Call, resource: OwnedResource) -> None:
        try:
            if resource.token == JOB_RUN:
                self._end_run(call, resource)
            else:
                self._delete(call, SERVED_TYPES[resource.token], resource)
        except ProviderError as error:
            if getattr(error.__cause__, "code", None) in _IN_USE:
                raise RemovalRefusedError(str(getattr(error.__cause__, "message", error.cause))) from error
            raise

    def _delete(self, call: Call, row: OciResourceType, resource: OwnedResource) -> None:
        what, client = f"Delete the {resource.words}", self._client(call, row)
        path = self._path_of(call, row, resource)
        if path is None or self._is_gone(call, row, client, path):
            return
        if row.token == BUCKET:
            empty_bucket(self.session, call.report.info, *path)
        if row.token == SECRET:
            later = sdk_module("vault.models").ScheduleSecretDeletionDetails()
            call_oci(call, what, partial(client.schedule_secret_deletion, *path, later))
        else:
            options = {"delete_related_job_runs": True} if row.token == JOB else {}
            call_oci(call, what, partial(getattr(client, f"delete_{row.noun}"), *path, **options))
        deadline = time.monotonic() + _SECONDS
        while not self._is_gone(call, row, client, path):
            if time.monotonic() > deadline:
                raise ProviderError(f"{what}: it is still there after {_SECONDS / 60:.0f} minutes")
            call.stop.wait(0.2)

    def _is_gone(self, call: Call, row: OciResourceType, client: Any, path: Sequence[str]) -> bool:
        get = partial(getattr(client, f"get_{row.noun}"), *path)
        found = read_from_oci_if_exists(call, f"Read the {row.words}", get)
        return found is None or getattr(found, "lifecycle_state", None) in row.gone | {"TERMINATED", "DELETED"}

    def _path_of(self, call: Call, row: OciResourceType, resource: OwnedResource) -> list[str] | None:
        """The arguments of its calls. None if it is not there any more."""
        if row.token == BUCKET:
            _, namespace, _, name = resource.id.split("/", 3)
            return [namespace, name]
        if row.token != LOG:
            return [resource.id]
        client = self.session.client("logging")
        for group in list_oci_pages(partial(client.list_log_groups, resource.place)):
            listed = partial(client.list_logs, group.id)
            if any(log.id == resource.id for log in list_oci_pages(listed)):
                return [group.id, resource.id]
        return None

    def _client(self, call: Call, row: OciResourceType) -> Any:
        """Policies and groups are changed in the tenancy's home region only."""
        if row.service != "identity":
            return self.session.client(row.service)
        if not self._home:
            identity = self.session.client("identity")
            ask = partial(identity.list_region_subscriptions, self.session.tenancy)
            subscribed = call_oci(call, "Read the tenancy's home region", ask).data
            self._home.append(next(region.region_name for region in subscribed if region.is_home_region))
        return self.session.client("identity", self._home[0])

    def _end_run(self, call: Call, resource: OwnedResource) -> None:
        """Ends a run. Its record goes with its job, or is deleted too where the job is gone."""
        client, deadline = self.session.client("data_science"), time.monotonic() + _SECONDS
        is_canceled = False
        while True:
            run = read_from_oci_if_exists(call, "Read the job run", partial(client.get_job_run, resource.id))
            if run is None or run.lifecycle_state in TERMINAL:
                break
            if not is_canceled and run.lifecycle_state != "CANCELING":
                call_oci(call, f"Cancel the {resource.words}", partial(client.cancel_job_run, resource.id))
                is_canceled = True
            if time.monotonic() > deadline:
                raise ProviderError(f"the {resource.words} did not end in {_SECONDS / 60:.0f} minutes")
            call.stop.wait(0.2)
        if run is not None and run.lifecycle_state != "DELETED":
            job = read_from_oci_if_exists(call, "Read the job", partial(client.get_job, resource.within))
            if job is None or job.lifecycle_state in _GONE:
                call_oci(call, f"Delete the {resource.words}", partial(client.delete_job_run, resource.id))


OWNED_RESOURCES = OwnedResources(
    find_owned_in_oci, lambda question: OwnedDeleter(session_of_caller(question.where)).delete
)
