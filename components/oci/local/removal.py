# SPDX-License-Identifier: Apache-2.0
"""Describes what is lost when a stack on OCI is removed: live job runs, their records and logs, objects and images."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from components.oci.client import job_runs
from components.oci.client.buckets import empty_bucket
from components.oci.client.calls import call_oci, is_missing_in_oci
from components.oci.client.job_runs import start_of_job_run
from components.oci.client.runs import OciRuns
from components.oci.client.session import DEPLOYER, sdk_module, session_of
from components.oci.plan import registry_host
from components.oci.stack import is_ocid
from components.oci.types import SERVED_TYPES
from components.oci.types.oci_resource_type import words_of_type
from components.plan.model import RunPlan
from components.platform.calls import LocalCloud, ProviderError, Tell, call_of
from components.platform.client import wait_for_end
from components.platform.local import (
    LiveRun,
    Removal,
    Row,
    State,
    attempt_folder,
    data_line,
    has_address,
    ids_of_own_runs,
    name_of_resource,
    named_results,
)
from components.platform.runs import TERMINAL
from schemas.name_suggestions import count_noun

BUCKET = "oci:ObjectStorage/bucket:Bucket"
REPOSITORY = "oci:Artifacts/containerRepository:ContainerRepository"
DYNAMIC_GROUP = "oci:Identity/dynamicGroup:DynamicGroup"
JOB = "oci:DataScience/job:Job"
LOG = "oci:Logging/log:Log"
# Counting ends here. Larger numbers are shown as `more than`.
_MOST_COUNTED = 1000
_MINUTES_TO_END = 20.0


def list_results(
    cloud: LocalCloud, bucket: str, run: RunPlan, nodes: Sequence[Mapping[str, Any]], tell: Tell
) -> Iterator[str]:
    """The objects that the current start has written, and the content of its result. The first of `nodes` is the main
    node."""
    folder = attempt_folder(run)
    if not folder or not bucket or not nodes:
        return
    session = session_of(cloud, DEPLOYER)
    call, client, namespace = call_of("up", tell), session.client("object_storage"), cloud.namespace
    wanted = {"prefix": f"{folder}/{start_of_job_run(nodes[0]['id'], {})}/output/", "fields": "name,size"}

    def listed() -> list[tuple[str, int]]:
        listing = call_oci(call, "List its output", lambda: client.list_objects(namespace, bucket, **wanted).data)
        return [(item.name, item.size) for item in listing.objects]

    def read(name: str) -> bytes:
        return bytes(call_oci(call, "Read its result", lambda: client.get_object(namespace, bucket, name).data.content))

    yield from named_results(listed, read)


def describe_resource(row: Row) -> str:
    """The resource in words, such as `security list demo-local-nodes`."""
    known = SERVED_TYPES.get(row["type"])
    words = known.words if known else words_of_type(row["type"].rpartition(":")[2])
    return f"{words} {name_of_resource(row)}"


def is_named(row: Row, own: State, by: State, inputs: str) -> bool:
    """Whether a stack refers to the resource: by its OCID or address in `inputs` (the inputs of all its resources, as
    text), or in an output."""
    if is_ocid(row["id"]) and row["id"] in inputs:
        return True
    outputs = by.outputs() if by.provider("oci") and any(by.made()) else {}
    # The name of a dynamic group is unique in the tenancy. Other named resources have an address that is unique to this
    # cloud.
    if row["type"] == DYNAMIC_GROUP:
        return bool(outputs.get("runsGroup") == name_of_resource(row))
    address = _address_of_resource(row, own)
    return bool(address) and (
        has_address(inputs, address) or address in (outputs.get("bucketUri"), outputs.get("imagePushAddress"))
    )


def _address_of_resource(row: Row, own: State) -> str:
    """The address by which other stacks refer to the resource, if not by its OCID."""
    values = row.get("outputs") or row.get("inputs") or {}
    namespace, provider = str(values.get("namespace", "")), own.provider("oci") or {}
    if row["type"] == BUCKET:
        return f"oci://{name_of_resource(row)}@{namespace}"
    region = str((provider.get("inputs") or {}).get("region", ""))
    return f"{registry_host(region)}/{namespace}/{name_of_resource(row)}" if row["type"] == REPOSITORY else ""


class RemovalReader:
    """Reads from the local cloud what a state does not contain."""

    def __init__(self, cloud: LocalCloud, tell: Tell) -> None:
        self._cloud = cloud
        self._tell = tell
        self._session = session_of(cloud, DEPLOYER)

    def describe_removal(self, rows: Sequence[Row], kept: Sequence[Row]) -> Removal:
        """Describes a removal. `rows`: the resources that are removed. `kept`: those that stay."""
        runs = self._job_runs({row["id"] for row in rows if row["type"] == JOB})
        live = _runs_by_title([run for run in runs if run.lifecycle_state not in TERMINAL])
        return Removal(live, (*self._records(rows, runs), *self._data(rows, "goes"), *self._data(kept, "stays")))

    def list_data(self) -> Iterator[str]:
        """Every bucket and repository of the tenancy."""
        identity, tenancy = self._session.client("identity"), self._cloud.tenancy
        below = self._list("compartments", identity.list_compartments, tenancy, compartment_id_in_subtree=True)
        storage, artifacts = self._session.client("object_storage"), self._session.client("artifacts")
        for place in (tenancy, *(one.id for one in below)):
            for bucket in self._list("buckets", storage.list_buckets, self._cloud.namespace, place):
                yield data_line("bucket", bucket.name, self._objects(bucket.name))
            for repository in self._list("repositories", artifacts.list_container_repositories, place):
                yield data_line("images", repository.display_name, self._images(repository.id))

    def has_objects(self, bucket: str) -> bool:
        """Whether a bucket has objects. False if it no longer exists."""
        try:
            return bool(self._objects(bucket))
        except ProviderError as error:
            if error.__cause__ is None or not is_missing_in_oci(error.__cause__):
                raise
            return False

    def _list(self, what: str, operation: Callable[..., Any], *place: str, **more: Any) -> list[Any]:
        list_all = sdk_module("pagination").list_call_get_all_results
        return list(self._ask(f"List the {what}", lambda: list_all(operation, *place, **more).data))

    def _records(self, rows: Sequence[Row], runs: Sequence[Any]) -> Iterator[str]:
        logs = [name_of_resource(row) for row in rows if row["type"] == LOG]
        if runs:
            printed = f", and what they printed with the log {', '.join(logs)}" if logs else ""
            yield f"records  of {count_noun(len(runs), 'job run')} go with their jobs{printed}"

    def _data(self, rows: Sequence[Row], fate: str) -> Iterator[str]:
        for row in rows:
            if inside := self._contents(row):
                noun = "bucket" if row["type"] == BUCKET else "images"
                yield f"{noun:8} {name_of_resource(row)} {fate} with its {inside}"

    def _contents(self, row: Row) -> str:
        """The number of objects or images in a bucket or repository. Nothing if it was deleted without Pulumi."""
        try:
            if row["type"] == BUCKET:
                return self._objects(name_of_resource(row))
            return self._images(row["id"]) if row["type"] == REPOSITORY else ""
        except ProviderError as error:
            if error.__cause__ is None or not is_missing_in_oci(error.__cause__):
                raise
            return ""

    def _job_runs(self, jobs: set[str]) -> list[Any]:
        """All runs of the jobs, including those that were started without Pulumi."""
        runs = OciRuns(self._session, self._cloud.compartment)
        return [run for run in runs.listed(call_of("down", self._tell)) if run.job_id in jobs] if jobs else []

    def _objects(self, bucket: str) -> str:
        client = self._session.client("object_storage")
        place = self._cloud.namespace, bucket
        items = self._ask(
            f"Look into the bucket {place[1]}",
            lambda: client.list_object_versions(*place, limit=_MOST_COUNTED).data.items,
        )
        names = {item.name for item in items}
        more = "more than " if len(items) == _MOST_COUNTED else ""
        return f"{more}{count_noun(len(names), 'object')}" if names else ""

    def _images(self, repository_id: str) -> str:
        client = self._session.client("artifacts")
        repository = self._ask(
            "Look into the repository of images", lambda: client.get_container_repository(repository_id).data
        )
        return count_noun(repository.image_count, "image") if repository.image_count else ""

    def _ask(self, what: str, operation: Callable[[], Any]) -> Any:
        return call_oci(call_of("down", self._tell), what, operation)


def _runs_by_title(runs: Sequence[Any]) -> tuple[LiveRun, ...]:
    by_title: dict[str, list[Any]] = defaultdict(list)
    for run in runs:
        tags = run.freeform_tags or {}
        title = f"{tags['job']}/{tags['run']}" if "job" in tags and "run" in tags else str(run.display_name)
        by_title[title].append(run)
    return tuple(
        LiveRun(
            title,
            # IN_PROGRESS if any is, otherwise the first by name.
            min((run.lifecycle_state for run in group), key=lambda state: (state != "IN_PROGRESS", state)),
            min(run.time_accepted for run in group),
        )
        for title, group in by_title.items()
    )


def empty_buckets(cloud: LocalCloud, going: Sequence[Row], tell: Tell) -> int:
    """Removes all objects of the buckets that are `going`, and returns their number."""
    session, removed = session_of(cloud, DEPLOYER), 0
    for row in going:
        if row["type"] != BUCKET:
            continue
        try:
            removed += empty_bucket(session, tell, cloud.namespace, name_of_resource(row))
        except ProviderError as error:
            # The bucket was deleted without Pulumi: then it has no objects.
            if error.__cause__ is None or not is_missing_in_oci(error.__cause__):
                raise
    return removed


def end_other_runs(cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> None:
    """Ends runs of the jobs in `rows` that are in no Pulumi state. Runs in `rows` end when they are removed themselves,
    but with a bucket they end now, because a run writes into it while it ends."""
    platform, call = OciRuns(session_of(cloud, DEPLOYER)), call_of("down", tell)
    own = ids_of_own_runs(rows, BUCKET)
    jobs = [row["id"] for row in rows if row["type"] == JOB]
    alive = [
        job_runs.node_of_job_run(run)
        for job in jobs
        for run in platform.runs_of_job(call, cloud.compartment, job, 0)
        if run.id not in own and run.lifecycle_state not in TERMINAL
    ]
    if alive:
        tell(f"Ending {count_noun(len(alive), 'job run')}, because their jobs or buckets are removed.")
        platform.cancel(call, alive)
        wait_for_end(call, platform, alive, _MINUTES_TO_END)
