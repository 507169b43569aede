# SPDX-License-Identifier: Apache-2.0
"""The types that the REST server's API gives to its handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from localcloud.openpai.controller import Controller
from localcloud.openpai.job_store import JobStore
from localcloud.openpai.rest_errors import invalid_parameters
from localcloud.openpai.tokens import Caller, Tokens
from localcloud.openpai.virtual_clusters import Allocations
from localcloud.server.faults import Faults
from localcloud.server.http import Reply, parse_strict_json, query_parameters


@dataclass(frozen=True)
class Parts:
    """The parts of one local OpenPAI."""

    home: Path
    store: JobStore
    tokens: Tokens
    allocations: Allocations
    controller: Controller
    faults: Faults


@dataclass(frozen=True)
class RestCall:
    """A call: its caller and its content, which the API has parsed. `caller` None: a guest."""

    parts: Parts
    params: Mapping[str, str]
    query: Mapping[str, str]
    caller: Caller | None
    body: bytes = b""
    is_form: bool = False

    @property
    def by(self) -> Caller:
        if self.caller is None:
            raise TypeError("a guest made a call that only users may make")
        return self.caller

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """The body's values: a form, or JSON."""
        try:
            content = query_parameters(self.body.decode()) if self.is_form else parse_strict_json(self.body)
        except (ValueError, RecursionError):
            raise invalid_parameters(f"The body is not {'a form' if self.is_form else 'JSON'}.") from None
        if not isinstance(content, dict):
            raise invalid_parameters("The body is not a JSON object.")
        return content

    def text(self, key: str) -> str:
        """A text of the body. Refuses a body without it."""
        value = self.values.get(key)
        if not isinstance(value, str) or not value:
            raise invalid_parameters(f'"{key}" is required, and must be a string.')
        return value

    @property
    def job(self) -> str:
        """The job in the path: `user~job`."""
        return self.params["job"]


Handler = Callable[[RestCall], Reply]


@dataclass(frozen=True)
class Route:
    """An operation. `name`: its name in faults."""

    name: str
    method: str
    path: str
    handler: Handler
    guests: bool = False


def parse_call_number(text: str, what: str) -> int:
    """A whole number of a path or a query."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise invalid_parameters(f"{what} must be a whole number.")
    return int(text)
