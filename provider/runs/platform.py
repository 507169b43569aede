# SPDX-License-Identifier: Apache-2.0
"""What a platform must be able to do for a run.

`provider/<platform>/platform.py` has `INPUTS`, what its runs take beside what every run takes, and two functions:
`platform` makes the platform from the provider's configuration and the inputs that connect, and `knows` says whether a
run's id is one of its own. What a platform imports of its cloud's client it imports when a run needs it.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from components.platform.calls import Call
from components.platform.errors import ProviderError
from components.platform.inputs import able_platforms, own_inputs, platform_module
from components.platform.runs import NodeRun, RunSpec
from components.platform.values import Properties, canonical

if TYPE_CHECKING:
    from provider.runs.tries import Try


class RunPlatform(Protocol):
    """A place where runs run."""

    def ensure(self, call: Call, spec: RunSpec, started: Sequence[NodeRun]) -> Iterator[NodeRun]:
        """Starts every node that does not run yet. Nodes that an interrupted attempt started are found and kept.

        Yields each node as soon as it exists: nothing is lost if a later node cannot be started.
        """

    def observe(self, call: Call, nodes: Sequence[NodeRun]) -> list[NodeRun]:
        """The nodes as they are now; one that no longer exists is `DELETED`."""

    def cancel(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        """Asks every living node to end, and does not wait."""

    def release(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        """Marks the runs as history: no later create takes them for its own."""

    def relabel(self, call: Call, spec: RunSpec, nodes: Sequence[NodeRun]) -> None:
        """Give the runs the names and tags of the spec."""

    def last_lines(self, call: Call, node: NodeRun, limit: int) -> list[str]:
        """The last lines of the node, oldest first. Raises ProviderError if they cannot be read."""

    def tries(self, call: Call, inputs: Properties, patiently: bool) -> list["Try"]:
        """The tries that are alive beside a run. A preview is not patient: it asks a busy cloud only once."""

    def describe(self, call: Call, run_id: str) -> tuple[Properties, list[NodeRun]] | None:
        """The inputs that would make this run, and its nodes. None if the run does not exist."""

    def ending(self, call: Call, run_id: str, inputs: Properties) -> str | None:
        """How a run ended whose records are gone, read from the files it left. None if they do not say."""


class RunPlatforms:
    """The platforms of one configured provider, made when first needed."""

    def __init__(self, config: Properties) -> None:
        self._config = config
        self._made: dict[tuple[str, str], RunPlatform] = {}

    def of(self, inputs: Properties, run_id: str = "") -> RunPlatform:
        """The platform of a run. An imported run has only its id."""
        name = inputs.get("platform") or _platform_that_knows(run_id)
        own = own_inputs(name)
        connects = {key: inputs[key] for key in own.connecting if inputs.get(key)} if own else {}
        key = (name, canonical(connects))
        if key not in self._made:
            self._made.setdefault(key, platform_module(name).platform({**self._config, **connects}))
        return self._made[key]


def _platform_that_knows(run_id: str) -> str:
    for name in able_platforms():
        if platform_module(name).knows(run_id):
            return name
    raise ProviderError(f"`{run_id}` is not the id of a run on any platform.", "Give the id of the main node's run.")
