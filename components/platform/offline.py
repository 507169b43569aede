# SPDX-License-Identifier: Apache-2.0
"""What stands in for a platform's cloud while its program is recorded without one (docs/review.md).

What only the cloud knows is answered with a text that begins with UNKNOWN, the same on both sides of a change, so that
it makes no difference of its own. What a stack file says is there is taken to be there.
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
    """The stack whose program asks: its name, and its configuration as values."""

    name: str
    config: Mapping[str, Any]

    def texts(self) -> frozenset[str]:
        """Every text of the file: what one of them names is taken to be there."""
        return frozenset(_texts(self.config))


class OfflineCloud:
    """What has a body is what a platform without a cloud of its own answers: a platform's own class inherits it."""

    def prepare(self) -> None:
        """Imports what its programs import, so that each of them need not."""

    def identify(self, token: str, name: str, inputs: Mapping[str, Any]) -> str:
        """The id of a new resource: legible, the same each time."""
        return name

    def outputs(self, token: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the cloud adds to a new resource's inputs, as far as components read it."""
        return {}

    def answer(self, function: str, arguments: Mapping[str, Any], stack: OfflineStack) -> Mapping[str, Any]:
        """What a look-up gives. Raises LookupError for what is not there, or cannot be known."""
        raise LookupError(f"{function} cannot be asked without a cloud")

    def borrowed(self) -> tuple[str, ...]:
        """The outputs that a stack may take from another one."""
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
