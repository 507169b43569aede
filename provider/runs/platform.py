# SPDX-License-Identifier: Apache-2.0
"""What a platform must be able to do for a run; each is a module, imported only when a run names it."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Protocol

from provider.base.resource import Call
from provider.base.values import Properties
from provider.runs.model import NodeRun, RunSpec

PLATFORMS: Mapping[str, str] = {"oci": "provider.oci.platform"}


class Platform(Protocol):
    """A place where runs run."""

    def ensure(self, call: Call, spec: RunSpec, known: Sequence[NodeRun]) -> Iterator[NodeRun]:
        """Start every node, finding first what an earlier, cut-off attempt had started.

        Each is given back as soon as it exists, so that nothing is lost when a later one can't be started.
        """

    def observe(self, call: Call, nodes: Sequence[NodeRun]) -> list[NodeRun]:
        """The nodes as they are now; one that no longer exists is `DELETED`."""

    def cancel(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        """Ask every node that lives to end; does not wait."""

    def release(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        """Forget the runs: they stay as history, and no later create takes them for its own."""

    def relabel(self, call: Call, spec: RunSpec, nodes: Sequence[NodeRun]) -> None:
        """Give the runs the names and tags of the spec."""

    def last_lines(self, call: Call, node: NodeRun, limit: int) -> list[str]:
        """The last lines the node wrote, oldest first; raises ProviderError when they can't be had."""

    def describe(self, call: Call, run_id: str) -> tuple[Properties, list[NodeRun]] | None:
        """The inputs that would have made this run, and its nodes; None when there is no such run."""

    def ending(self, call: Call, run_id: str, inputs: Properties) -> str | None:
        """How a run ended whose job runs are gone, by what it left itself; None when that does not tell."""


class Platforms:
    """The platforms of one configured provider, made when first needed."""

    def __init__(self, config: Properties) -> None:
        self._config = config
        self._made: dict[str, Platform] = {}

    def __getitem__(self, name: str) -> Platform:
        if name not in self._made:
            platform: Platform = import_module(PLATFORMS[name]).platform(self._config)
            self._made.setdefault(name, platform)
        return self._made[name]
