# SPDX-License-Identifier: Apache-2.0
"""Checks the inputs of a run before anything is made."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.platforms import platforms_in
from provider.base.errors import InputFailure
from provider.base.values import UNKNOWN, Properties, Secret
from provider.runs.model import LAYOUTS, UNTIL

REQUIRED = ("platform", "job", "project", "compartment", "displayName", "nodes")
_DEFAULTS = {"layout": "run-per-node", "until": "started", "attempt": 1}
_OPTIONAL = ("tags", "image", "maximumRuntimeMinutes", "logGroup", "log", "timeouts")
INPUTS = frozenset({*REQUIRED, *_DEFAULTS, *_OPTIONAL})
_CHOICES = {"platform": platforms_in("provider", "platform"), "layout": LAYOUTS, "until": UNTIL}
_NODE_KEYS = frozenset({"name", "role", "rank", "environment", "arguments", "replicas", "minimumSuccess"})
_TIMEOUTS = frozenset({"access", "started", "finished"})


def with_defaults(inputs: Properties) -> Properties:
    """The inputs in one form: defaults filled in, arguments as lists, values as text."""
    filled = {**_DEFAULTS, **{key: value for key, value in inputs.items() if value is not None}}
    nodes = filled.get("nodes")
    if isinstance(nodes, list):
        filled["nodes"] = [_normal_node(node) if isinstance(node, Mapping) else node for node in nodes]
    return filled


def _normal_node(node: Mapping[str, Any]) -> Properties:
    normal = {key: value for key, value in node.items() if value is not None}
    if isinstance(normal.get("arguments"), str):
        normal["arguments"] = shlex.split(normal["arguments"])
    if isinstance(normal.get("arguments"), list):
        normal["arguments"] = [_text(item) for item in normal["arguments"]]
    if isinstance(normal.get("environment"), Mapping):
        normal["environment"] = {key: _text(value) for key, value in normal["environment"].items()}
    return normal


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is UNKNOWN or isinstance(value, str | Secret) else str(value)


def failures(inputs: Properties) -> Iterator[InputFailure]:
    for key in REQUIRED:
        if inputs.get(key) in (None, "", []):
            yield InputFailure(key, f"`{key}` is missing.")
    for key in sorted(set(inputs) - INPUTS - {"__defaults"}):
        yield InputFailure(key, f"A run has no input `{key}`; it has {', '.join(sorted(INPUTS))}.")
    for key, choices in _CHOICES.items():
        value = inputs.get(key)
        if value not in (None, UNKNOWN, *choices):
            yield InputFailure(key, f"`{value}` is not one of {', '.join(choices)}.")
    if inputs.get("log") and not inputs.get("logGroup"):
        yield InputFailure("log", "`log` is given without its `logGroup`; give both.")
    yield from _positive("attempt", inputs.get("attempt"), int)
    yield from _positive("maximumRuntimeMinutes", inputs.get("maximumRuntimeMinutes"), int)
    yield from _timeout_failures(inputs.get("timeouts"))
    yield from _node_failures(inputs.get("nodes"), inputs.get("layout"))


def _positive(path: str, value: Any, *kinds: type[float]) -> Iterator[InputFailure]:
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
            yield InputFailure(f"timeouts.{key}", "No wait is called so. There are access, started and finished.")
        yield from _positive(f"timeouts.{key}", value, int, float)


def _node_failures(nodes: Any, layout: Any) -> Iterator[InputFailure]:
    if nodes is None or nodes is UNKNOWN:
        return
    if not isinstance(nodes, list):
        yield InputFailure("nodes", "This is a list of nodes.")
        return
    names = [node.get("name") for node in nodes if isinstance(node, Mapping)]
    for name in {name for name in names if name is not UNKNOWN and names.count(name) > 1}:
        yield InputFailure("nodes", f"Two nodes are called `{name}`; every node has a name of its own.")
    for index, node in enumerate(nodes):
        if node is not UNKNOWN:
            yield from _one_node(f"nodes[{index}]", node, layout)


def _one_node(path: str, node: Any, layout: Any) -> Iterator[InputFailure]:
    if not isinstance(node, Mapping):
        yield InputFailure(path, "A node is an object with a name.")
        return
    if not node.get("name"):
        yield InputFailure(f"{path}.name", "The node has no name.")
    for key in sorted(set(node) - _NODE_KEYS):
        yield InputFailure(f"{path}.{key}", f"A node has no `{key}`; it has {', '.join(sorted(_NODE_KEYS))}.")
    for key in ("replicas", "minimumSuccess"):
        if layout == "run-per-node" and node.get(key) not in (None, 1):
            yield InputFailure(f"{path}.{key}", "Only the layout `node-groups` has this. Here, list every node.")
        yield from _positive(f"{path}.{key}", node.get(key), int)
