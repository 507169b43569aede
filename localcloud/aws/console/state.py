# SPDX-License-Identifier: Apache-2.0
"""Reads buckets and instances from moto's state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from components.aws.client.machines import Instance, newest
from components.aws.client.queue import LONGEST_BYTES, QueueView
from components.aws.client.tickets import ROOT, Cluster
from launcher.escaping import terminal
from localcloud.aws.account import ACCOUNT


def buckets() -> Mapping[str, Any]:
    """moto's buckets, by their names."""
    from moto.s3.models import s3_backends

    return dict(s3_backends[ACCOUNT]["aws"].buckets)


def objects_of(bucket: Any) -> Iterator[tuple[str, Any]]:
    """The objects of a bucket, without deleted ones of which old versions are left."""
    from moto.s3.models import FakeKey

    return ((name, one) for name, one in bucket.keys.items() if isinstance(one, FakeKey))


def clusters() -> Iterator[Cluster]:
    """The clusters that have a queue."""
    for name, bucket in buckets().items():
        parts = (key.split("/") for key in dict.keys(bucket.keys) if key.startswith(f"{ROOT}/"))
        jobs = dict.fromkeys(part[2] for part in parts if len(part) > 3)
        yield from (Cluster(name, job) for job in jobs)


@dataclass(frozen=True)
class InnerQueue(QueueView):
    """A queue in moto's state."""

    cluster: Cluster

    def keys(self, prefix: str) -> Iterator[str]:
        bucket = buckets().get(self.cluster.bucket)
        return iter([key for key in dict.keys(bucket.keys) if key.startswith(prefix)] if bucket else ())

    def read(self, key: str, what: str = "") -> tuple[bytes, str, datetime] | None:
        one = self._find(key)
        return (one.value, one.etag, aware(one.last_modified)) if one is not None else None

    def is_cancelled(self, number: int) -> bool:
        return self._find(self.cluster.cancellation(number)) is not None

    def tag(self, key: str) -> str:
        """A tag that changes with the object; empty if there is no object."""
        one = self._find(key)
        return str(one.etag) if one is not None else ""

    def _find(self, key: str) -> Any:
        from moto.s3.models import FakeKey

        bucket = buckets().get(self.cluster.bucket)
        one = bucket.keys.get(key) if bucket else None
        return one if isinstance(one, FakeKey) and one.size <= LONGEST_BYTES else None


def instance_of(one: Any) -> Instance:
    """moto's instance in the form in which the provider reads EC2's answers."""
    reason = one.state_reason.message or one.state_transition_reason or ""
    return Instance(
        one.id, tags_of(one).get("node", ""), one.state, aware(one.launch_time), terminal(str(reason)),
        one.lifecycle == "spot",
    )  # fmt: skip


def instances(cluster: Cluster) -> Mapping[str, Instance]:
    """The instances of a cluster, the newest one of each node."""
    from localcloud.aws.additions import machine_view

    wanted = {"job": cluster.job, **({"stack": cluster.stack} if cluster.stack else {})}
    every = [one for backend in machine_view.backends() for one in backend.all_instances()]
    return newest(instance_of(one) for one in every if wanted.items() <= tags_of(one).items())


def aware(moment: datetime) -> datetime:
    """A time of moto as an aware one: it has no zone, and means UTC."""
    return moment.replace(tzinfo=UTC)


def tags_of(one: Any) -> dict[str, str]:
    return {str(tag["key"]): str(tag["value"]) for tag in one.get_tags()}


def once(read: Callable[[], Mapping[str, Instance]]) -> Callable[[Sequence[str]], Mapping[str, Instance]]:
    """Caches the result of the first call."""
    known: list[Mapping[str, Instance]] = []

    def ask(names: Sequence[str]) -> Mapping[str, Instance]:
        if not known:
            known.append(read())
        return {name: known[0][name] for name in names if name in known[0]}

    return ask
