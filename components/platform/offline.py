# SPDX-License-Identifier: Apache-2.0
"""Replaces a platform's cloud while its program is recorded without one (docs/review.md).

Values that only the cloud knows are texts that begin with UNKNOWN. They are the same on both sides of a change, so they
make no difference. Existing resources that a stack file names are assumed to exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from components.platform.review import UNKNOWN


def unknown(what: str) -> str:
    return f"{UNKNOWN} {what}"


@dataclass(frozen=True, slots=True)
class OfflineStack:
    """The stack whose program is recorded: its name, and its configuration as values."""

    name: str
    config: Mapping[str, Any]

    def texts(self) -> frozenset[str]:
        """Every text of the file. Resources that they name are assumed to exist."""
        return frozenset(_texts(self.config))


class OfflineCloud:
    """Methods with a body are defaults, for platforms without a cloud."""

    def prepare(self) -> None:
        """Imports the modules of its programs in advance, so that not each of them has to."""

    def identify(self, token: str, name: str, inputs: Mapping[str, Any]) -> str:
        """The id of a new resource. It is readable, and the same each time."""
        return name

    def outputs(self, token: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The outputs that the cloud adds to a new resource's inputs, as far as components read them."""
        return {}

    def answer(self, function: str, arguments: Mapping[str, Any], stack: OfflineStack) -> Mapping[str, Any]:
        """The result of a lookup. Raises LookupError for a missing resource, or if it cannot be known."""
        raise LookupError(f"{function} cannot be asked without a cloud")

    def borrowed(self) -> tuple[str, ...]:
        """The outputs of another stack that a stack may use."""
        return ()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
