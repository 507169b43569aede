# SPDX-License-Identifier: Apache-2.0
"""What the author of a provider writes: resources, functions, and the plugin that holds them."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from provider.base.diff import Diff, DiffRules, compare
from provider.base.errors import Cancelled, InputFailure
from provider.base.values import UNKNOWN, Properties


class Reporter(Protocol):
    """How a resource reports to the person who watches the engine."""

    def info(self, message: str) -> None: ...
    def warning(self, message: str) -> None: ...
    def status(self, message: str) -> None:
        """Shows a line beside the resource until the next one replaces it."""


class Stop:
    """Whether the engine asked to stop. A stop interrupts every wait."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def ask(self) -> None:
        self._asked.set()

    def check(self) -> None:
        if self._asked.is_set():
            raise Cancelled

    def wait(self, seconds: float) -> None:
        if self._asked.wait(max(seconds, 0)):
            raise Cancelled


@dataclass(frozen=True)
class Call:
    """What surrounds one call of the engine."""

    urn: str
    type: str
    name: str
    report: Reporter
    stop: Stop
    timeout: float = 0.0
    seed: bytes = b""
    # The engine replaces a resource with one of the same inputs (`--replace`): do not adopt what exists already.
    anew: bool = False
    # The id of the resource that the new one replaces, where a plugin knows it.
    instead_of: str = ""
    # For so many seconds a cloud that does not answer at all is asked again.
    patience: float = 120.0
    started: float = field(default_factory=time.monotonic)

    def deadline(self, default_seconds: float) -> float:
        """When this call must be done: after the user's `customTimeouts`, or after the default."""
        return self.started + (self.timeout or default_seconds)


@dataclass(frozen=True)
class CheckedInputs:
    inputs: Properties
    failures: tuple[InputFailure, ...] = ()


@dataclass(frozen=True)
class CreatedResource:
    id: str
    outputs: Properties


@dataclass(frozen=True)
class LiveResource:
    """A resource as it is now. `inputs` are those that would make it so."""

    id: str
    outputs: Properties
    inputs: Properties


class ProviderResource(ABC):
    """One type of resource. Its methods get plain values: secrets are unwrapped before each call and wrapped after."""

    rules: DiffRules = DiffRules()
    delete_before_replace = False
    secret_outputs: frozenset[str] = frozenset()

    def check(self, call: Call, old: Properties, new: Properties) -> CheckedInputs:
        return CheckedInputs(new)

    def diff(self, call: Call, old: Properties, old_outputs: Properties, new: Properties) -> Diff:
        return compare(old, new, self.rules, self.delete_before_replace)

    def preview(self, inputs: Properties, old_outputs: Properties | None) -> Properties:
        """The outputs that are known before the operation. `old_outputs` is None for a create."""
        return {**(old_outputs or {}), **inputs}

    @abstractmethod
    def create(self, call: Call, inputs: Properties) -> CreatedResource: ...

    @abstractmethod
    def read(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> LiveResource | None: ...  # noqa: A002

    @abstractmethod
    def update(
        self,
        call: Call,
        id: str,  # noqa: A002
        outputs: Properties,
        old: Properties,
        new: Properties,
    ) -> Properties: ...

    @abstractmethod
    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None: ...  # noqa: A002


Function = Callable[[Properties], Properties]


class Plugin(ABC):
    """A provider: its name, its configuration, and the resources it can make."""

    name: str
    version: str

    def check_config(self, config: Properties) -> CheckedInputs:
        return CheckedInputs(config)

    def replacing_config(self, old: Properties, new: Properties) -> Iterable[str]:
        """The configuration keys whose change replaces all resources, such as another region."""
        return ()

    @abstractmethod
    def configure(self, config: Properties) -> None: ...

    @abstractmethod
    def resource(self, token: str) -> ProviderResource | None: ...

    def function(self, token: str) -> Function | None:
        return None

    def schema(self) -> Mapping[str, Any]:
        return {"name": self.name, "version": self.version}


def unknown_where_missing(values: Properties, names: Iterable[str]) -> Properties:
    return {**dict.fromkeys(names, UNKNOWN), **values}
