# SPDX-License-Identifier: Apache-2.0
"""A cluster's queue in its bucket: tickets, what nodes report of them, and what nodes report of themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from components.aws.client.tickets import Cluster, Ticket, number_of
from components.platform.calls import Call, ProviderError, read_at_once
from components.s3 import Session, attempt, code_of, pages, read_if_exists

# Objects that are read at once.
_AT_ONCE = 16
# So often another start takes the number that this one wanted.
_MOST_RACES = 1000
# A larger object is none of ours: the environment and arguments of many nodes take less.
LONGEST_BYTES = 16 * 1024 * 1024
_TAKEN = frozenset({"PreconditionFailed", "412"})
# Not a set: what a stranger wrote as a state may have no hash.
ENDED = ("SUCCEEDED", "FAILED", "CANCELED")


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What a machine says of itself. `written`: when S3 took it, by AWS's clock."""

    content: Mapping[str, Any]
    written: datetime

    def text(self, key: str) -> str:
        value = self.content.get(key)
        return value if isinstance(value, str) else ""

    @property
    def state(self) -> str:
        return self.text("state")


def document_of(body: bytes) -> Mapping[str, Any] | None:
    """What a node wrote. None for anything else: its training has the role of its machine, and writes what it likes."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, Mapping) and isinstance(content.get("state"), str) else None


class QueueView:
    """What a cluster's queue holds, however its objects are read."""

    cluster: Cluster

    def keys(self, prefix: str) -> Iterator[str]:
        raise NotImplementedError

    def read(self, key: str, what: str) -> tuple[bytes, str, datetime] | None:
        """The bytes of an object, its ETag, and when S3 took it."""
        raise NotImplementedError

    def at_once(self, read: Callable[[Any], Any], wanted: Sequence[Any]) -> list[Any]:
        return [read(one) for one in wanted]

    def is_cancelled(self, number: int) -> bool:
        raise NotImplementedError

    def numbers(self) -> list[int]:
        """Those of all tickets, the oldest first."""
        named = (number_of(key) for key in self.keys(f"{self.cluster.folder}/queue/"))
        return sorted(number for number in named if number is not None)

    def ticket(self, number: int) -> Ticket | None:
        body = self.read(self.cluster.ticket(number), "Read a ticket of the queue")
        return Ticket.read(self.cluster.bucket, self.cluster.job, number, body[0]) if body else None

    def tickets(self, numbers: Sequence[int] | None = None) -> list[Ticket]:
        """Those that can be read, the newest first."""
        wanted = sorted(self.numbers() if numbers is None else numbers, reverse=True)
        return [ticket for ticket in self.at_once(self.ticket, wanted) if ticket is not None]

    def starts(self, number: int, nodes: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """How each node does in a start. One that has said nothing yet is absent."""
        keys = [self.cluster.start(number, node) for node in nodes]
        contents = self.at_once(partial(self._document, "Read how a node does"), keys)
        return {node: content[0] for node, content in zip(nodes, contents, strict=True) if content is not None}

    def holder(self, number: int) -> tuple[Ticket, int] | None:
        """The start that runs, or will run next, before this one, and how many wait. None if it is this one's turn.

        Starts begin in the order of their numbers, so one that began and has ended ends the search.
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
        """What machines say of themselves, by their names."""
        keys = [self.cluster.node(node) for node in nodes]
        contents = self.at_once(partial(self._document, "Read how a machine is"), keys)
        return {node: NodeReport(*content) for node, content in zip(nodes, contents, strict=True) if content}

    def _document(self, what: str, key: str) -> tuple[Mapping[str, Any], datetime] | None:
        read = self.read(key, what)
        content = document_of(read[0]) if read else None
        return (content, read[2]) if read and content is not None else None


@dataclass(frozen=True)
class Queue(QueueView):
    """The queue by S3's API, for reading and for writing."""

    session: Session
    call: Call
    cluster: Cluster
    access_minutes: float = 0.0

    @property
    def _client(self) -> Any:
        return self.session.client("s3", self.cluster.region)

    def put(self, make: Callable[[int], Ticket]) -> Ticket:
        """Takes the next free number. Two starts at once get two numbers: S3 refuses an object that exists."""
        number = max(self.numbers(), default=0) + 1
        for _ in range(_MOST_RACES):
            ticket = make(number)
            if self._make(ticket):
                return ticket
            number += 1
        raise ProviderError(f"{_MOST_RACES} other starts took a number of the queue first.", "Try again.")

    def _make(self, ticket: Ticket) -> bool:
        """Whether the ticket is in the queue now, ours or none: an answer that was lost is asked for again."""
        place = {"Bucket": self.cluster.bucket, "Key": self.cluster.ticket(ticket.number)}
        put = partial(self._client.put_object, Body=ticket.body, ContentType="application/json", IfNoneMatch="*")
        if self._unless_refused("Put a ticket into the queue", partial(put, **place)):
            return True
        body = self.read(place["Key"], "Read a ticket of the queue")
        return body is not None and body[0] == ticket.body

    def change(self, number: int, change: Callable[[dict[str, Any]], None]) -> None:
        """Rewrites a ticket. Whoever rewrites it at the same time loses nothing; a ticket that is gone stays gone."""
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
        """Whether the condition held."""
        try:
            attempt(self.call, what, put, self.access_minutes)
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
        attempt(self.call, "Ask the nodes to end the run", put)

    def is_cancelled(self, number: int) -> bool:
        head = partial(self._client.head_object, Bucket=self.cluster.bucket, Key=self.cluster.cancellation(number))
        return read_if_exists(self.call, "Look whether the run was cancelled", head) is not None

    def read(self, key: str, what: str) -> tuple[bytes, str, datetime] | None:
        """The bytes of an object, its ETag, and when S3 took it."""

        def read() -> tuple[bytes, str, datetime]:
            answer = self._client.get_object(Bucket=self.cluster.bucket, Key=key)
            with answer["Body"] as body:
                return body.read(LONGEST_BYTES), answer["ETag"], answer["LastModified"]

        return read_if_exists(self.call, what, read, self.access_minutes)

    def keys(self, prefix: str) -> Iterator[str]:
        listing = pages(
            self.call, "List the queue", self._client, "list_objects_v2", self.access_minutes,
            Bucket=self.cluster.bucket, Prefix=prefix,
        )  # fmt: skip
        for page in listing:
            yield from (row["Key"] for row in page.get("Contents") or ())

    def at_once(self, read: Callable[[Any], Any], wanted: Sequence[Any]) -> list[Any]:
        return read_at_once(read, wanted, _AT_ONCE)
