# SPDX-License-Identifier: Apache-2.0
"""Gets the Pulumi engine onto a machine, and keeps local stacks apart from the user's own."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainyard.engine.obtain import environment

__all__ = ["environment"]


def __getattr__(name: str) -> Any:
    """Imports `environment` only when it is used: importing one small module of this package must stay fast."""
    if name == "environment":
        from trainyard.engine.obtain import environment

        return environment
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
