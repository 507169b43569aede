# SPDX-License-Identifier: Apache-2.0
"""What a framework needs beyond its row in catalog/. Most need nothing. Only the job's framework is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType

from launcher.document import Launch
from launcher.placeholders import Place
from launcher.processes import Spec

# Each module may define any of the functions below.
_MODULES = {name: f"launcher.frameworks.{name}" for name in ("accelerate", "dask", "horovod", "tensorflow")}


def _framework_module(launch: Launch) -> ModuleType | None:
    name = _MODULES.get(launch.framework)
    return import_module(name) if name else None


def framework_values(launch: Launch, addresses: tuple[str, ...]) -> Mapping[str, str]:
    """Placeholders that only this framework has."""
    found: Mapping[str, str] = getattr(_framework_module(launch), "values", lambda *_: {})(launch, addresses)
    return found


def framework_variables(launch: Launch, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Variables that depend on the machine, and so cannot be in the launch document."""
    found: Mapping[str, str] = getattr(_framework_module(launch), "variables", lambda *_: {})(launch, environment)
    return found


def framework_helpers(launch: Launch, place: Place, environment: Mapping[str, str], folder: str) -> list[Spec]:
    """Processes that the framework needs beside the command on this node."""
    found: list[Spec] = getattr(_framework_module(launch), "helpers", lambda *_: [])(launch, place, environment, folder)
    return found


def wrap_for_framework(launch: Launch, words: Sequence[str]) -> list[str]:
    """The command line of a process of the command, perhaps wrapped."""
    found: list[str] = getattr(_framework_module(launch), "wrap_command", lambda _, words: list(words))(launch, words)
    return found


def what_command_awaits(launch: Launch, place: Place) -> str:
    """What the command still waits for; empty if it may start."""
    found: str = getattr(_framework_module(launch), "waits_for", lambda *_: "")(launch, place)
    return found
