# SPDX-License-Identifier: Apache-2.0
"""What goes with a stack of OCI: its live job runs, their records and logs, objects and images."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from components.oci.client import sdk
from components.oci.client.calls import attempt, is_gone
from components.oci.local.sessions import DEPLOYER, session_of
from components.oci.local.types import BUCKET, JOB, LOG, REPOSITORY
from components.platform.calls import Tell, call_of
from components.platform.errors import ProviderError
from components.platform.local_cloud import LocalCloud
from components.platform.removal import LiveRun, Removal, data_line
from components.platform.runs import TERMINAL
from components.platform.states import Row, name_of
from schemas.names import plural

# Enough to say how much it is; who keeps more knows that it is a lot.
_MOST_COUNTED = 1000


class RemovalReader:
    """Into the local cloud, for what a state does not say."""

    def __init__(self, cloud: LocalCloud, tell: Tell) -> None:
        self._cloud = cloud
        self._tell = tell
        self._session = session_of(cloud, DEPLOYER)

    def describe_removal(self, rows: Sequence[Row], kept: Sequence[Row]) -> Removal:
        """`rows` are removed, `kept` stay."""
        runs = self._job_runs({row["id"] for row in rows if row["type"] == JOB})
        live = _together([run for run in runs if run.lifecycle_state not in TERMINAL])
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
        """Not if it is gone."""
        try:
            return bool(self._objects(bucket))
        except ProviderError as error:
            if error.__cause__ is None or not is_gone(error.__cause__):
                raise
            return False

    def _list(self, what: str, operation: Callable[..., Any], *place: str, **more: Any) -> list[Any]:
        list_all = sdk.module("pagination").list_call_get_all_results
        return list(self._ask(f"List the {what}", lambda: list_all(operation, *place, **more).data))

    def _records(self, rows: Sequence[Row], runs: Sequence[Any]) -> Iterator[str]:
        logs = [name_of(row) for row in rows if row["type"] == LOG]
        if runs:
            printed = f", and what they printed with the log {', '.join(logs)}" if logs else ""
            yield f"records  of {plural(len(runs), 'job run')} go with their jobs{printed}"

    def _data(self, rows: Sequence[Row], fate: str) -> Iterator[str]:
        for row in rows:
            if inside := self._contents(row):
                noun = "bucket" if row["type"] == BUCKET else "images"
                yield f"{noun:8} {name_of(row)} {fate} with its {inside}"

    def _contents(self, row: Row) -> str:
        """What lies in what holds data; nothing where that is gone behind Pulumi's back."""
        try:
            if row["type"] == BUCKET:
                return self._objects(name_of(row))
            return self._images(row["id"]) if row["type"] == REPOSITORY else ""
        except ProviderError as error:
            if error.__cause__ is None or not is_gone(error.__cause__):
                raise
            return ""

    def _job_runs(self, jobs: set[str]) -> list[Any]:
        """All of the jobs, also those that a person started without Pulumi."""
        if not jobs:
            return []
        list_all = sdk.module("pagination").list_call_get_all_results
        operation = self._session.client("data_science").list_job_runs
        runs = self._ask("List the job runs", lambda: list_all(operation, self._cloud.compartment).data)
        return [run for run in runs if run.job_id in jobs and run.lifecycle_state != "DELETED"]

    def _objects(self, bucket: str) -> str:
        client = self._session.client("object_storage")
        place = self._cloud.namespace, bucket
        items = self._ask(
            f"Look into the bucket {place[1]}",
            lambda: client.list_object_versions(*place, limit=_MOST_COUNTED).data.items,
        )
        names = {item.name for item in items}
        more = "more than " if len(items) == _MOST_COUNTED else ""
        return f"{more}{plural(len(names), 'object')}" if names else ""

    def _images(self, repository_id: str) -> str:
        client = self._session.client("artifacts")
        repository = self._ask(
            "Look into the repository of images", lambda: client.get_container_repository(repository_id).data
        )
        return plural(repository.image_count, "image") if repository.image_count else ""

    def _ask(self, what: str, operation: Callable[[], Any]) -> Any:
        return attempt(call_of("down", self._tell), what, operation)


def _together(runs: Sequence[Any]) -> tuple[LiveRun, ...]:
    by_title: dict[str, list[Any]] = defaultdict(list)
    for run in runs:
        tags = run.freeform_tags or {}
        title = f"{tags['job']}/{tags['run']}" if "job" in tags and "run" in tags else str(run.display_name)
        by_title[title].append(run)
    return tuple(
        LiveRun(title, _state({run.lifecycle_state for run in group}), min(run.time_accepted for run in group))
        for title, group in by_title.items()
    )


def _state(states: set[str]) -> str:
    return "IN_PROGRESS" if "IN_PROGRESS" in states else sorted(states)[0]
