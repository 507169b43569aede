# SPDX-License-Identifier: Apache-2.0
"""What each platform provides for a plan: a part of `components.platform.base.Platform`.

No SDK is imported: only `deploy` does that, at the moment it is called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from components.plan.launch import RolePart
    from components.plan.model import Plan
    from components.plan.ports import ResolvedJob
    from schemas.model import Layout, Run

Row = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """How nodes find one another: its name in the launch document, and a text for people."""

    source: str
    words: str


@dataclass(frozen=True, slots=True)
class Words:
    """The rows of `trainyard plan` in the platform's own words. Each row has a title and a text."""

    place: Sequence[Row]
    principals: Sequence[Row]
    # The network's place, and what its nodes can reach.
    network: Sequence[Row]
    # After bucket and repository.
    storage: Sequence[Row]
    # Of each job, by its name: the machines in the platform's own words.
    jobs: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    # Which of `bucket`, `registry` and `block storage` a stack does not have.
    without: frozenset[str] = frozenset()


class AccessReport(Protocol):
    """The report of `trainyard access`: plain values as JSON, and a text."""

    def text(self) -> str: ...


class Platform(ABC):
    """Methods with a body are defaults, which platforms inherit."""

    # How nodes reach bucket, registry and logs: `through the service gateway`.
    way_to_services: str
    # Whether launch documents name the code repository. Otherwise, the platform has another way.
    names_code: bool = True
    # Whether runs of one job can train at the same time. Otherwise, they wait for one another.
    runs_at_once: bool = True

    @abstractmethod
    def lower(self, stack: Any, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> Plan:
        """The plan with this platform's own fields. `stack`: the platform's own Stack."""

    def circumstances(self, stack: Any) -> frozenset[str]:
        """Words under `when` in catalog/access.toml that hold because of this platform."""
        return frozenset()

    @abstractmethod
    def rendezvous(self, layout: Layout) -> Rendezvous: ...

    def environments(
        self, job: ResolvedJob, part: RolePart, names: Mapping[str, str], run: Run, ranks: range
    ) -> Iterator[Mapping[str, str]]:
        """Variables of each node of a role, in addition to its launch document: images of this platform read them."""
        return repeat({}, len(ranks))

    def group_environment(self, job: ResolvedJob) -> Mapping[str, str]:
        """The same for the layout `node-groups`, in which all nodes of a role have the same variables."""
        return {}

    @abstractmethod
    def words(self, plan: Any) -> Words: ...

    @abstractmethod
    def access_report(self, plan: Any, deployers: str) -> AccessReport:
        """`deployers`: the group that runs `pulumi up`. Raises ValueError if the platform does not allow that name."""

    def deploy(self, plan: Any, folder: Path) -> dict[str, Any]:
        """Makes every resource in a Pulumi program, and returns the outputs of the stack."""
        raise NotImplementedError(f"{plan.platform} is only planned: its row in catalog/platforms.toml says so")
