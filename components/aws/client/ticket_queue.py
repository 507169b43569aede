# SPDX-License-Identifier: Apache-2.0
"""A cluster's queue in its bucket: tickets, the nodes' reports about each ticket, and the machines' reports about
themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from components.aws.client.tickets import ROOT, Cluster, Ticket, number_of
from components.platform.calls import Call, ProviderError, read_at_once
from components.s3 import Session, call_aws, code_of, list_aws_pages, read_from_aws_if_exists

# The number of objects that are read in parallel.
_AT_ONCE = 16
# Attempts to claim a queue number while other starts claim them, too.
_MOST_RACES = 1000
# Trainyard writes no larger object, even for the environments and arguments of many nodes.
LONGEST_BYTES = 16 * 1024 * 1024
_TAKEN = frozenset({"PreconditionFailed", "412"})
# Not a set: a state that others wrote may be unhashable.
ENDED = ("SUCCEEDED", "FAILED", "CANCELED")


@dataclass(frozen=True, slots=True)
class NodeReport:
    """A machine's report about itself. `written`: S3's modification time, by AWS's clock."""

    content: Mapping[str, Any]
    written: datetime

    def text(self, key: str) -> str:
        value = self.content.get(key)
        return value if isinstance(value, str) else ""

    @property
    def state(self) -> str:
        return self.text("state")


def parse_node_document(body: bytes) -> Mapping[str, Any] | None:
    """The JSON object that a node wrote. None for anything else: training code has the machine's role, and can write
    anything."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, Mapping) and isinstance(content.get("state"), str) else None


class QueueView:
    """The content of a cluster's queue. Subclasses read the objects."""

    cluster: Cluster

    def keys(self, prefix: str) -> Iterator[str]:
        raise NotImplementedError

    def read(self, key: str, what: str) -> tuple[bytes, str, datetime] | None:
        """The bytes of an object, its ETag, and its modification time."""
        raise NotImplementedError

    def at_once(self, read: Callable[[Any], Any], wanted: Sequence[Any]) -> list[Any]:
        return [read(one) for one in wanted]

    def is_cancelled(self, number: int) -> bool:
        raise NotImplementedError

    def numbers(self) -> list[int]:
        """The numbers of all tickets, the oldest first."""
        named = (number_of(key) for key in self.keys(f"{self.cluster.folder}/queue/"))
        return sorted(number for number in named if number is not None)

    def ticket(self, number: int) -> Ticket | None:
        body = self.read(self.cluster.ticket(number), "Read a ticket of the queue")
        return Ticket.read(self.cluster.bucket, self.cluster.job, number, body[0]) if body else None

    def tickets(self, numbers: Sequence[int] | None = None) -> list[Ticket]:
        """The valid tickets, the newest first."""
        wanted = sorted(self.numbers() if numbers is None else numbers, reverse=True)
        return [ticket for ticket in self.at_once(self.ticket, wanted) if ticket is not None]

    def starts(self, number: int, nodes: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """The report of each node about a start. A node without a report is absent."""
        keys = [self.cluster.start(number, node) for node in nodes]
        contents = self.at_once(partial(self._document, "Read the report of a node"), keys)
        return {node: content[0] for node, content in zip(nodes, contents, strict=True) if content is not None}

    def holder(self, number: int) -> tuple[Ticket, int] | None:
        """The earlier start that runs or will run next, and the number of earlier starts that have not ended. None if
        it is this start's turn.

        Starts run in the order of their numbers, so the search stops at the first one that has run and ended.
        """
        ahead: list[Ticket] = []
        for earlier in sorted((n for n in self.numbers() if n < number), reverse=True):
            ticket = self.ticket(earlier)
            if ticket is None:
                continue
            starts = self.starts(earlier, ticket.node_names)
            if any(starts.get(name, {}).get("state") not in ENDED for name in ticket.node_names):
                ahead.append(ticket)
            elif any(start.get("startedAt") for start in starts.values()):
                break
        return (ahead[-1], len(ahead)) if ahead else None

    def reports(self, nodes: Sequence[str]) -> dict[str, NodeReport]:
        """The machines' reports about themselves, by node."""
        keys = [self.cluster.node(node) for node in nodes]
        contents = self.at_once(partial(self._document, "Read the report of a machine"), keys)
        return {node: NodeReport(*content) for node, content in zip(nodes, contents, strict=True) if content}

    def _document(self, what: str, key: str) -> tuple[Mapping[str, Any], datetime] | None:
        read = self.read(key, what)
        content = parse_node_document(read[0]) if read else None
        return (content, read[2]) if read and content is not None else None


@dataclass(frozen=True)
class Queue(QueueView):
    """The queue through S3's API, for reading and writing."""

    session: Session
    call: Call
    cluster: Cluster
    access_minutes: float = 0.0

    @property
    def _client(self) -> Any:
        return self.session.client("s3", self.cluster.region)

    def put(self, make: Callable[[int], Ticket]) -> Ticket:
        """Claims the next free number. Simultaneous starts get different numbers, because S3 refuses to overwrite an
        object."""
        number = max(self.numbers(), default=0) + 1
        for _ in range(_MOST_RACES):
            ticket = make(number)
            if self._make(ticket):
                return ticket
            number += 1
        raise ProviderError(f"{_MOST_RACES} other starts claimed a queue number first.", "Try again.")

    def _make(self, ticket: Ticket) -> bool:
        """Whether this ticket is in the queue now. S3 also refuses a repeated request whose first response was lost, so
        a refused ticket is compared with the existing one."""
        place = {"Bucket": self.cluster.bucket, "Key": self.cluster.ticket(ticket.number)}
        put = partial(self._client.put_object, Body=ticket.body, ContentType="application/json", IfNoneMatch="*")
        if self._unless_refused("Put a ticket into the queue", partial(put, **place)):
            return True
        body = self.read(place["Key"], "Read a ticket of the queue")
        return body is not None and body[0] == ticket.body

    def change(self, number: int, change: Callable[[dict[str, Any]], None]) -> None:
        """Rewrites a ticket. Simultaneous changes are not lost, and a deleted ticket stays deleted."""
        key = self.cluster.ticket(number)
        for _ in range(_MOST_RACES):
            read = self.read(key, "Read a ticket of the queue")
            ticket = Ticket.read(self.cluster.bucket, self.cluster.job, number, read[0]) if read else None
            if read is None or ticket is None:
                return
            content = dict(ticket.content)
            change(content)
            body = replace(ticket, content=content).body
            put = partial(
                self._client.put_object, Bucket=self.cluster.bucket, Key=key, Body=body,
                ContentType="application/json", IfMatch=read[1],
            )  # fmt: skip
            if body == read[0] or self._unless_refused("Change a ticket of the queue", put):
                return

    def _unless_refused(self, what: str, put: Callable[[], Any]) -> bool:
        """Whether the condition of the request was true."""
        try:
            call_aws(self.call, what, put, self.access_minutes)
        except ProviderError as error:
            if code_of(error.__cause__) not in _TAKEN:
                raise
            return False
        return True

    def ask_to_cancel(self, number: int) -> None:
        body = json.dumps({"at": datetime.now(UTC).isoformat(timespec="seconds")}).encode()
        put = partial(
            self._client.put_object, Bucket=self.cluster.bucket, Key=self.cluster.cancellation(number), Body=body
        )
        call_aws(self.call, "Ask the nodes to end the run", put)

    def is_cancelled(self, number: int) -> bool:
        head = partial(self._client.head_object, Bucket=self.cluster.bucket, Key=self.cluster.cancellation(number))
        return read_from_aws_if_exists(self.call, "Look whether the run was cancelled", head) is not None

    def read(self, key: str, what: str) -> tuple[bytes, str, datetime] | None:
        """The bytes of an object, its ETag, and when S3 took it."""

        def read() -> tuple[bytes, str, datetime]:
            answer = self._client.get_object(Bucket=self.cluster.bucket, Key=key)
            with answer["Body"] as body:
                return body.read(LONGEST_BYTES), answer["ETag"], answer["LastModified"]

        return read_from_aws_if_exists(self.call, what, read, self.access_minutes)

    def keys(self, prefix: str) -> Iterator[str]:
        listing = list_aws_pages(
            self.call, "List the queue", self._client, "list_objects_v2", self.access_minutes,
            Bucket=self.cluster.bucket, Prefix=prefix,
        )  # fmt: skip
        for page in listing:
            yield from (row["Key"] for row in page.get("Contents") or ())

    def at_once(self, read: Callable[[Any], Any], wanted: Sequence[Any]) -> list[Any]:
        return read_at_once(read, wanted, _AT_ONCE)


def list_queues(session: Session, call: Call, bucket: str) -> Iterator[Queue]:
    """The queues of all clusters in the bucket."""
    listing = list_aws_pages(
        call, f"List the clusters of {bucket}", session.client("s3"), "list_objects_v2",
        Bucket=bucket, Prefix=f"{ROOT}/", Delimiter="/",
    )  # fmt: skip
    for page in listing:
        for row in page.get("CommonPrefixes") or ():
            yield Queue(session, call, Cluster(bucket, row["Prefix"].split("/")[-2]))
