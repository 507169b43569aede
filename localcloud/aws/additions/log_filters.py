# SPDX-License-Identifier: Apache-2.0
"""Filter patterns of CloudWatch Logs, and how many events are kept. moto parses only some patterns, and returns all
lines for others. It keeps all events in memory.

A pattern is a list of terms. A line must contain all of them. `-` before a term excludes lines with it. If terms have
`?` before them, one of these is enough. A term must be quoted unless it has only letters, digits and underscores.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from localcloud.aws.aws_errors import Reason, RefusalError, aws_refusal

# The most events that a stream and a group keep.
EVENTS_OF_STREAM, EVENTS_OF_GROUP = 50_000, 200_000
_TERM = re.compile(r'\s*(?P<sign>[-?]?)(?:"(?P<phrase>(?:[^"\\]|\\.)*)"|(?P<word>[^\s"]+))(?=\s|$)')
_WORD = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True)
class LineFilter:
    """A parsed pattern. moto calls `matches` for each line."""

    wanted: tuple[str, ...]
    unwanted: tuple[str, ...]
    optional: tuple[str, ...]

    def matches(self, message: str) -> bool:
        if any(term in message for term in self.unwanted):
            return False
        if self.wanted or not self.optional:
            return all(term in message for term in self.wanted)
        return any(term in message for term in self.optional)


@lru_cache(maxsize=64)
def read_pattern(pattern: str | None) -> LineFilter:
    """Parses a pattern. Raises AWS's refusal if it is invalid, and our own if the local AWS does not support it."""
    text = (pattern or "").strip()
    if text.startswith(("{", "[", "%")):
        raise RefusalError(Reason.UNKNOWN_OPERATION, "The local AWS supports only filter patterns of terms")
    terms: dict[str, list[str]] = {"": [], "-": [], "?": []}
    at = 0
    while at < len(text):
        term = _TERM.match(text, at)
        if term is None:
            raise aws_refusal("log filter")
        if term["word"] is not None and not _WORD.fullmatch(term["word"]):
            raise aws_refusal("log filter term", term=term["word"][:100])
        terms[term["sign"]].append(term["word"] or re.sub(r"\\(.)", r"\1", term["phrase"]))
        at = term.end()
    return LineFilter(tuple(terms[""]), tuple(terms["-"]), tuple(terms["?"]))


def install_log_filters(models: Any) -> None:
    """Changes moto's module of models. Called once in a process."""
    models.EventMessageFilter = read_pattern
    put = models.LogStream.put_log_events

    def put_log_events(self: Any, log_events: list[dict[str, Any]]) -> Any:
        answer = put(self, log_events)
        _drop_oldest_events(self, len(self.events) - EVENTS_OF_STREAM)
        streams = self.log_group.streams.values()
        # The largest stream loses its oldest events first: most likely it is the one that floods the group.
        while (excess := sum(len(one.events) for one in streams) - EVENTS_OF_GROUP) > 0:
            by_size = sorted(streams, key=lambda one: len(one.events))
            smaller = len(by_size[-2].events) if len(by_size) > 1 else 0
            _drop_oldest_events(by_size[-1], min(excess, max(len(by_size[-1].events) - smaller, excess // 10 + 1)))
        return answer

    models.LogStream.put_log_events = put_log_events


def _drop_oldest_events(stream: Any, count: int) -> None:
    """Deletes the oldest events of a stream."""
    if count > 0:
        del stream.events[:count]
        stream.trainyard_dropped = getattr(stream, "trainyard_dropped", 0) + count
