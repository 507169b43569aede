# SPDX-License-Identifier: Apache-2.0
"""What a shape's image must be made for."""

from __future__ import annotations

from catalog.tables import table

_ARM = (".A1.", ".A2.", ".A4.", ".GB200.", ".GB300.")


def has_gpu(shape: str) -> bool:
    """Whether a shape has one, also one the table of shapes does not list."""
    return ".GPU" in shape or bool(table("shapes").get(shape, {}).get("accelerators"))


def is_arm(shape: str) -> bool:
    return any(part in f"{shape}." for part in _ARM)
