# SPDX-License-Identifier: Apache-2.0
"""The base classes of a provider: resources, functions, and the plugin that holds them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from components.platform.calls import Call, InputFailure
from components.platform.values import UNKNOWN, Diff, DiffRules, Properties, compare_inputs


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
    """The current state of a resource. `inputs`: those that would make it so."""

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
        return compare_inputs(old, new, self.rules, self.delete_before_replace)

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

    def diffs_for_people(self) -> bool:
        """Whether a diff also says in words what changes, as keys that the engine's view of one line shows."""
        return True


def unknown_where_missing(values: Properties, names: Iterable[str]) -> Properties:
    return {**dict.fromkeys(names, UNKNOWN), **values}
