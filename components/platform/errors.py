# SPDX-License-Identifier: Apache-2.0
"""The errors that a provider reports to the engine: the cause first, then what to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# The engine's own variable: with "true" it goes on with what does not depend on a resource that failed.
GO_ON = "PULUMI_CONTINUE_ON_ERROR"


class ProviderError(Exception):
    """An expected failure: shown as text, without a traceback."""

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(f"{cause}\n{remedy}" if remedy else cause)
        self.cause = cause
        self.remedy = remedy


class PartialFailureError(ProviderError):
    """The resource exists, but it is not as requested. The engine keeps it, and the next update continues with it."""

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
    """An invalid input, and why it is invalid. `missing`: it is needed, and not there."""

    property: str
    reason: str
    missing: bool = False
