# SPDX-License-Identifier: Apache-2.0
"""The inputs of a run: those of every run, and those that only its platform has. Validates both."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from catalog.platforms import LONGEST_EXPECTS, Capability, Lacks, find_capability, platforms_with
from components.platform.calls import InputFailure
from components.platform.values import UNKNOWN, Properties, Secret, canonical_json

# Inputs of every run that may change while it runs. A platform may have more (`RunInput.may_change`).
MUTABLE = frozenset({"tags", "displayName", "until", "timeouts", "turns", "expects"})
UNTIL = ("accepted", "started", "finished")
REQUIRED = ("platform", "displayName", "nodes")
DEFAULTS: Mapping[str, Any] = {"until": "started", "attempt": 1}
NEUTRAL = frozenset({*REQUIRED, *DEFAULTS, "tags", "image", "maximumRuntimeMinutes", "timeouts", "turns", "expects"})
# What a run expects of its nodes and their network. Its launchers test that before training (launcher/preflight.py).
EXPECTS = "expects"
NODE_KEYS = frozenset({"name", "role", "rank", "environment", "arguments"})


@dataclass(frozen=True)
class RunInput:
    """An input that only one platform's runs have. `shape`: its row in the provider's schema."""

    shape: Mapping[str, Any]
    required: bool = False
    default: Any = None
    # Whether it may change while the run runs, as a token does. A change of any other input starts the run again.
    may_change: bool = False
    # Whether it is an endpoint or a credential. Such inputs configure the platform's client, as the provider's do.
    connects: bool = False


def _no_failures(inputs: Properties) -> Iterator[InputFailure]:
    return iter(())


def _old_inputs_as_they_are(old: Properties, new: Properties) -> Properties:
    return old


@dataclass(frozen=True)
class OwnInputs(Capability):
    """The inputs that only this platform's runs have, and what is special about them."""

    place = "client.inputs.INPUTS"
    inputs: Mapping[str, RunInput]
    # The input that names the resource on which runs run. Replacing that resource also ends tries on it.
    stands_on: str
    # Further keys of a node, with their rows in the provider's schema.
    node: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Validates the values. Missing and unknown inputs are found without it.
    failures: Callable[[Properties], Iterator[InputFailure]] = _no_failures
    # Returns the old inputs, completed from the new ones by values that the platform never returns. An imported run
    # lacks them.
    with_hidden: Callable[[Properties, Properties], Properties] = _old_inputs_as_they_are
    # Whether new permissions take effect late. A run that was refused for lack of them is then started again.
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
    return platforms_with(OwnInputs)


def own_inputs(name: Any) -> OwnInputs | None:
    """The platform's own inputs. None if no platform has this name, or if the name is not known yet."""
    own = find_capability(name, OwnInputs) if isinstance(name, str) else None
    return None if isinstance(own, Lacks) else own


def mutable_inputs(name: Any) -> frozenset[str]:
    """The inputs that may change while a run of this platform runs."""
    own = own_inputs(name)
    return MUTABLE | own.changing if own else MUTABLE


def is_own(key: str) -> bool:
    """Whether an input is only the platform's. Keys that begin with two underscores are the engine's."""
    return key not in NEUTRAL and not key.startswith("__")


_CHOICES = {"platform": able_platforms(), "until": UNTIL}
_TIMEOUTS = frozenset({"access", "started", "finished"})


def with_defaults(inputs: Properties) -> Properties:
    """The inputs in their normal form: with defaults, arguments as lists, values as text."""
    own = own_inputs(inputs.get("platform"))
    defaults = {**DEFAULTS, **(own.defaults if own else {})}
    filled = {**defaults, **{key: value for key, value in inputs.items() if value is not None}}
    nodes = filled.get("nodes")
    if isinstance(nodes, list):
        filled["nodes"] = [_normal_node(node) if isinstance(node, Mapping) else node for node in nodes]
    return filled


def _normal_node(node: Mapping[str, Any]) -> Properties:
    normal = {key: value for key, value in node.items() if value is not None}
    if isinstance(normal.get("arguments"), str):
        normal["arguments"] = shlex.split(normal["arguments"])
    if isinstance(normal.get("arguments"), list):
        normal["arguments"] = [_text_or_unknown(item) for item in normal["arguments"]]
    if isinstance(normal.get("environment"), Mapping):
        normal["environment"] = {key: _text_or_unknown(value) for key, value in normal["environment"].items()}
    return normal


def _text_or_unknown(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is UNKNOWN or isinstance(value, str | Secret) else str(value)


def input_failures(inputs: Properties) -> Iterator[InputFailure]:
    own = own_inputs(inputs.get("platform"))
    yield from missing_inputs(inputs)
    if own:
        for key in sorted(key for key in inputs if is_own(key) and key not in own.inputs):
            listed = ", ".join(sorted({*NEUTRAL, *own.inputs}))
            yield InputFailure(key, f"A run has no input `{key}`; it has {listed}.")
    for key, choices in _CHOICES.items():
        value = inputs.get(key)
        if value not in (None, UNKNOWN, *choices):
            yield InputFailure(key, f"`{value}` is not one of {', '.join(choices)}.")
    yield from _positive_failures("attempt", inputs.get("attempt"), int)
    yield from _positive_failures("maximumRuntimeMinutes", inputs.get("maximumRuntimeMinutes"), int)
    yield from _timeout_failures(inputs.get("timeouts"))
    yield from _turn_failures(inputs.get("turns"))
    yield from _expects_failures(inputs.get(EXPECTS))
    yield from _node_failures(inputs.get("nodes"), NODE_KEYS | own.node.keys() if own else None)
    if own:
        yield from own.failures(inputs)


def missing_inputs(inputs: Properties) -> Iterator[InputFailure]:
    own = own_inputs(inputs.get("platform"))
    for key in (*REQUIRED, *(own.required if own else ())):
        if inputs.get(key) in (None, "", []):
            yield InputFailure(key, f"`{key}` is missing.", missing=True)


def _positive_failures(path: str, value: Any, *kinds: type[float]) -> Iterator[InputFailure]:
    if value is None or value is UNKNOWN:
        return
    if isinstance(value, bool) or not isinstance(value, kinds) or value <= 0:
        yield InputFailure(path, f"`{value}` is not a positive number.")


def _timeout_failures(timeouts: Any) -> Iterator[InputFailure]:
    if timeouts is None or timeouts is UNKNOWN:
        return
    if not isinstance(timeouts, Mapping):
        yield InputFailure("timeouts", "This is an object of minutes: access, started, finished.")
        return
    for key, value in timeouts.items():
        if key not in _TIMEOUTS:
            yield InputFailure(f"timeouts.{key}", "There is no such timeout; there are access, started and finished.")
        yield from _positive_failures(f"timeouts.{key}", value, int, float)


def _turn_failures(turns: Any) -> Iterator[InputFailure]:
    if turns is None or turns is UNKNOWN:
        return
    if not isinstance(turns, Mapping) or turns.keys() != {"atMost", "names"} or not isinstance(turns["names"], str):
        yield InputFailure("turns", "This is an object: `atMost`, and how the `names` of its runs begin.")
        return
    yield from _positive_failures("turns.atMost", turns["atMost"] or -1, int)


def _expects_failures(expects: Any) -> Iterator[InputFailure]:
    if expects is None or expects is UNKNOWN:
        return
    if not isinstance(expects, Mapping):
        yield InputFailure(EXPECTS, "This is an object, which trainyard makes from the stack file.")
    elif len(canonical_json(expects).encode()) > LONGEST_EXPECTS:
        yield InputFailure(EXPECTS, f"It is longer than {LONGEST_EXPECTS // 1024} KiB.")


def without_expects(inputs: Properties) -> Properties:
    """The inputs for comparison. A start is told what it expects, so another expectation changes nothing of a run that
    was started. States of releases before it have none."""
    return {key: value for key, value in inputs.items() if key != EXPECTS}


def _node_failures(nodes: Any, keys: Set[str] | None) -> Iterator[InputFailure]:
    """Validates the nodes. `keys`: the keys that a node may have; None if the platform is not known yet."""
    if nodes is None or nodes is UNKNOWN:
        return
    if not isinstance(nodes, list):
        yield InputFailure("nodes", "This is a list of nodes.")
        return
    names = [node.get("name") for node in nodes if isinstance(node, Mapping)]
    for name in {name for name in names if name is not UNKNOWN and names.count(name) > 1}:
        yield InputFailure("nodes", f"Two nodes are called `{name}`; every node has a name of its own.")
    for index, node in enumerate(nodes):
        if node is UNKNOWN:
            continue
        path = f"nodes[{index}]"
        if not isinstance(node, Mapping):
            yield InputFailure(path, "A node is an object with a name.")
            continue
        if not node.get("name"):
            yield InputFailure(f"{path}.name", "The node has no name.")
        for key in sorted(set(node) - keys) if keys else ():
            yield InputFailure(f"{path}.{key}", f"A node has no `{key}`; it has {', '.join(sorted(keys or ()))}.")
