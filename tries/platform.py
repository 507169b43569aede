# SPDX-License-Identifier: Apache-2.0
"""How tries are started on a platform; each platform's folder answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from catalog.platforms import import_platform, platforms_in
from components.platform.calls import Tell
from components.platform.runs import NodeRun
from components.platform.tries import PlannedTry, ReadyTry, TryError
from schemas.judge import Judged

if TYPE_CHECKING:
    from localcloud.control import Cloud


@dataclass(frozen=True)
class TryQuestion:
    """Where the stack is deployed: on the local `cloud`, at the `place` that a person named, or where `config` says."""

    judged: Judged
    config: Mapping[str, Any]
    cloud: Cloud | None
    place: str | None
    tell: Tell
    profile: str | None = None


class TryPlatform(Protocol):
    # Where the stack is deployed, if not where its file says.
    region: str | None

    def prepare(self, planned: PlannedTry) -> ReadyTry:
        """Finds what is deployed. Raises TryError if that is nothing, or if the caller may not see it."""

    def start(self, ready: ReadyTry) -> Sequence[NodeRun]:
        """Starts every node. If one cannot be started, or the person interrupts, those that were started are ended."""


def try_platform(question: TryQuestion) -> TryPlatform:
    stack = question.judged.stack
    name = stack.platform if stack else ""
    if name not in platforms_in("client.tries"):
        raise TryError(f"the stack runs on {name}: nothing can be tried there yet")
    made: TryPlatform = import_platform(name, "client.tries").make(question)
    return made
