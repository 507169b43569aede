# SPDX-License-Identifier: Apache-2.0
"""Calls of the local AWS that a command makes itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from components.platform.calls import Tell, call_of
from components.platform.errors import ProviderError
from components.s3.calls import attempt, code_of, is_gone
from components.s3.calls import pages as _pages

T = TypeVar("T")
_MISSING = ("NotFound", "NoSuch", "DoesNotExist", "Unknown")


def ask(tell: Tell, what: str, operation: Callable[[], T]) -> T:
    """The cloud's answer; a busy cloud is asked again, and that is said."""
    return attempt(call_of(what, tell), what, operation)


def ask_if_there(tell: Tell, what: str, operation: Callable[[], T]) -> T | None:
    """The same. None where the cloud has no such thing."""
    try:
        return ask(tell, what, operation)
    except ProviderError as error:
        cause = error.__cause__
        if is_gone(cause) or any(word in code_of(cause) for word in _MISSING):
            return None
        raise


def pages(tell: Tell, what: str, client: Any, operation: str, **request: Any) -> Iterator[Any]:
    return _pages(call_of(what, tell), what, client, operation, **request)
