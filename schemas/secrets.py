# SPDX-License-Identifier: Apache-2.0
"""Secrets as a stack file has them: a mapping with the one key `secure`, whose value Pulumi has encrypted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_secret(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"secure"}


def holds_secret(value: Any) -> bool:
    """Whether a secret is anywhere inside."""
    if isinstance(value, Mapping):
        return is_secret(value) or any(map(holds_secret, value.values()))
    return isinstance(value, list) and any(map(holds_secret, value))
