# SPDX-License-Identifier: Apache-2.0
"""Gets the Pulumi engine onto a machine, and gives local stacks a place of their own."""

from engine.local import environment

__all__ = ["environment"]
