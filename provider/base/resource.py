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
    """How a resource speaks to whoever watches the engine."""

    def info(self, message: str) -> None: ...
    def warning(self, message: str) -> None: ...
    def status(self, message: str) -> None:
        """A line that is shown beside the resource and replaced by the next one."""


class Stop:
    """The engine's wish to stop, which cuts every wait short."""

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
    # The engine replaces a resource by one with the same inputs (`--replace`): what is found is not to be taken.
    anew: bool = False
    started: float = field(default_factory=time.monotonic)

    def deadline(self, default_seconds: float) -> float:
        """The moment by which this call must be done: the user's `customTimeouts`, else the default."""
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
    """A resource as it is now; `inputs` are what would have made it so."""

    id: str
    outputs: Properties
    inputs: Properties


class ProviderResource(ABC):
    """One type of resource. It is given plain values: secrets are opened before and sealed again after each call."""

    rules: DiffRules = DiffRules()
    delete_before_replace = False
    secret_outputs: frozenset[str] = frozenset()

    def check(self, call: Call, old: Properties, new: Properties) -> CheckedInputs:
        return CheckedInputs(new)

    def diff(self, call: Call, old: Properties, old_outputs: Properties, new: Properties) -> Diff:
        return compare(old, new, self.rules, self.delete_before_replace)

    def preview(self, inputs: Properties, old_outputs: Properties | None) -> Properties:
        """The outputs as far as they are known before anything is done; `old_outputs` is None for a create."""
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
    """A provider: what it is called, how it is configured, and what it can make."""

    name: str
    version: str

    def check_config(self, config: Properties) -> CheckedInputs:
        return CheckedInputs(config)

    def replacing_config(self, old: Properties, new: Properties) -> Iterable[str]:
        """Configuration whose change makes all resources others (another account, another region)."""
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
