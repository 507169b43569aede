# SPDX-License-Identifier: Apache-2.0
"""Calls of the local cloud that a command makes itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from components.oci.client.calls import attempt, is_gone
from components.platform.calls import Tell, call_of
from components.platform.errors import ProviderError

T = TypeVar("T")


def ask(tell: Tell, what: str, operation: Callable[[], T]) -> T:
    """The cloud's answer; a busy cloud is asked again, and that is said."""
    return attempt(call_of(what, tell), what, operation)


def unless_gone(tell: Tell, what: str, delete: Callable[[], Any]) -> None:
    try:
        ask(tell, what, delete)
    except ProviderError as error:
        if error.__cause__ is None or not is_gone(error.__cause__):
            raise
