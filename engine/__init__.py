# SPDX-License-Identifier: Apache-2.0
"""Gets the Pulumi engine onto a machine, and gives local stacks a place of their own."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.local import environment

__all__ = ["environment"]


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: whoever only wants one small module of this room does not pay for the others."""
    if name == "environment":
        from engine.local import environment

        return environment
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
