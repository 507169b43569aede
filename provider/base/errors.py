# SPDX-License-Identifier: Apache-2.0
"""What a provider tells the engine when something does not work: cause first, then what to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class ProviderError(Exception):
    """An expected failure: shown as text, without a traceback."""

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(f"{cause}\n{remedy}" if remedy else cause)
        self.cause = cause
        self.remedy = remedy


class PartialFailureError(ProviderError):
    """The resource exists but is not as wished: the engine keeps it, and the next update goes on from there."""

    def __init__(self, resource_id: str, outputs: Mapping[str, Any], cause: str, remedy: str = "") -> None:
        super().__init__(cause, remedy)
        self.resource_id = resource_id
        self.outputs = dict(outputs)


class Cancelled(ProviderError):  # noqa: N818 - it is the user's wish, not an error
    """The engine asked to stop."""

    def __init__(self) -> None:
        super().__init__("Cancelled.", "Run the same command again to go on from here.")


@dataclass(frozen=True)
class InputFailure:
    """An input that can not be right."""

    property: str
    reason: str
