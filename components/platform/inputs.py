# SPDX-License-Identifier: Apache-2.0
"""What a run takes: the inputs of every run, and those that only its platform has."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.platform.base import answering, answers
from components.platform.errors import InputFailure
from components.platform.values import Properties

# These inputs of every run may change while it goes on. A platform may have more (`RunInput.may_change`).
MUTABLE = frozenset({"tags", "displayName", "until", "timeouts"})
UNTIL = ("accepted", "started", "finished")
REQUIRED = ("platform", "displayName", "nodes")
DEFAULTS: Mapping[str, Any] = {"until": "started", "attempt": 1}
NEUTRAL = frozenset({*REQUIRED, *DEFAULTS, "tags", "image", "maximumRuntimeMinutes", "timeouts"})
NODE_KEYS = frozenset({"name", "role", "rank", "environment", "arguments"})


@dataclass(frozen=True)
class RunInput:
    """An input that only one platform's runs have. `shape`: its row in the provider's schema."""

    shape: Mapping[str, Any]
    required: bool = False
    default: Any = None
    # Whether it may change while a run goes on, as a token does. A change of any other input starts the run again.
    may_change: bool = False
    # Whether it says where calls go, or as whom. The platform is made with it, beside the provider's configuration.
    connects: bool = False


def _nothing(inputs: Properties) -> Iterator[InputFailure]:
    return iter(())


def _as_they_are(old: Properties, new: Properties) -> Properties:
    return old


@dataclass(frozen=True)
class OwnInputs:
    """What the platform's runs take beside what every run takes."""

    inputs: Mapping[str, RunInput]
    # The input that names what runs stand on. What replaces that ends the tries that stand on it, too.
    stands_on: str
    # Further keys of a node, with their rows in the provider's schema.
    node: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # What is wrong about the values, beyond what is missing or unknown.
    failures: Callable[[Properties], Iterator[InputFailure]] = _nothing
    # The old inputs, with what the place never shows taken from the new ones: an imported run has not got it.
    with_hidden: Callable[[Properties, Properties], Properties] = _as_they_are
    # Whether new rights take a while: a run that was refused for lack of them is then started again.
    access_comes_late: bool = True

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(key for key, row in self.inputs.items() if row.required)

    @property
    def changing(self) -> frozenset[str]:
        return frozenset(key for key, row in self.inputs.items() if row.may_change)

    @property
    def connecting(self) -> tuple[str, ...]:
        return tuple(key for key, row in self.inputs.items() if row.connects)

    @property
    def defaults(self) -> Mapping[str, Any]:
        return {key: row.default for key, row in self.inputs.items() if row.default is not None}


def able_platforms() -> tuple[str, ...]:
    """The platforms on which runs can be started."""
    return answering("runs")


def own_inputs(name: Any) -> OwnInputs | None:
    """None if no platform has this name, or if the name is not known yet."""
    return answers(name).run_inputs if isinstance(name, str) else None


def mutable_inputs(name: Any) -> frozenset[str]:
    """The inputs that may change while a run of this platform goes on."""
    own = own_inputs(name)
    return MUTABLE | own.changing if own else MUTABLE


def is_own(key: str) -> bool:
    """Whether an input is the platform's. Keys of the engine itself begin with two underscores."""
    return key not in NEUTRAL and not key.startswith("__")
