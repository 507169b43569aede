# SPDX-License-Identifier: Apache-2.0
"""The interface between the console and the platforms, with the runs that the console shows.

Each platform implements it in its folder, from its own state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from components.platform.progress import ProgressPoint
from components.platform.runs import NodeRun, overall_state
from components.values.protocols import protocol_title
from components.values.security_rules import SecurityRule, port_range_text
from launcher.redraws import Lines
from localcloud.clients import modules_of_local_homes
from localcloud.server.cloud import ServedCloud

# Items shown per section.
MANY = 100
# Lines shown of a run, and characters of each.
LINES, LONGEST_LINE = 40, 2_000
# Log entries read for these lines: a progress bar consists of several.
ENTRIES = 100
# Runs shown, and ranks of each.
MOST_RUNS = 100
MOST_RANKS = 256
LONGEST_NAME = 100
Item = dict[str, Any]
Evidence = Mapping[str, Any]
Points = Mapping[int, Sequence[ProgressPoint]]


@dataclass(frozen=True, slots=True)
class RunNode:
    """A rank. `log`: the log of its output. `machine`: the id under which the hosts have its firewall's counts."""

    rank: int
    role: str
    run: NodeRun
    log: str = ""
    machine: str = ""


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A start of a run. `key`: the id of its first node's run, which is unique in the cloud. `variables`: the names of
    its environment variables."""

    key: str
    stack: str
    title: str
    attempt: int | None
    created: float
    nodes: tuple[RunNode, ...]
    variables: tuple[str, ...]

    @property
    def state(self) -> str:
        return overall_state(node.run for node in self.nodes)

    @property
    def over(self) -> bool:
        return all(node.run.over for node in self.nodes)


RULE_COLUMNS = ["way", "protocol", "peer", "ports", "why"]
R = TypeVar("R", bound=TrainingRun)


@dataclass(frozen=True)
class Section:
    """Items under a title. If several platforms have the same title, their items are shown together.

    `empty`: the text if there are no items; without such a text the section is left out. `last`: shown at the end.
    """

    title: str
    items: Sequence[Item]
    empty: str = ""
    last: bool = False


@dataclass(frozen=True)
class RunContent:
    """The content of a run. `statuses`: the launchers' status objects, by rank. `points`: the ranks' progress. `lines`:
    the last output."""

    facts: Sequence[Sequence[str]] = ()
    statuses: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    points: Points = field(default_factory=dict)
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class PlaceNames:
    """The names of places outside of a run. `note`: a remark for readers of the drawing. `addresses_of`: the addresses
    that a rule's peer stands for; empty for a block of addresses."""

    names: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    addresses_of: Callable[[str], tuple[str, ...]] = lambda peer: ()


class ConsolePlatform(Protocol[R]):
    """A platform's part of the console. It only reads, limits the size of its answers, and caches what it parsed,
    because requests are frequent."""

    places: PlaceNames

    async def runs(self) -> Sequence[R]:
        """The newest runs, the newest first."""

    async def content(self, run: R, most: int) -> RunContent:
        """The content of a run, with at most `most` points of each rank."""

    async def sections(self) -> Sequence[Section]:
        """The sections, always with the same titles in the same order."""

    def facts(self) -> Sequence[tuple[str, str]]:
        """Facts that identify this cloud's platform, such as its region."""


def console_platforms(cloud: ServedCloud) -> Iterator[ConsolePlatform[Any]]:
    for module in modules_of_local_homes("console.platform"):
        made: ConsolePlatform[Any] = module.make(cloud)
        yield made


def last_output_lines(run: TrainingRun, entries: Iterable[tuple[object, str]]) -> list[str]:
    """The last lines of these entries, each with its rank. Progress bars are shown in their present form."""
    lines = Lines()
    shown = [(str(rank), line) for rank, text in entries for line in lines.add(str(rank), text)]
    last = [*shown, *lines.unfinished()][-LINES:]
    alone = len(run.nodes) == 1
    return [line[:LONGEST_LINE] if alone else f"[{rank}] {line[:LONGEST_LINE]}" for rank, line in last]


def rule_row(rule: SecurityRule, peer: str) -> list[str]:
    """A security rule in RULE_COLUMNS. `peer`: its name for people."""
    way = "in" if rule.direction == "ingress" else "out"
    return [way, protocol_title(rule.protocol), peer, port_range_text(rule.ports, "all"), rule.description]
