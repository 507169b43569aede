# SPDX-License-Identifier: Apache-2.0
"""The common fields of the rows in the plugins' tables of resource types."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class TypeRow:
    # States of the API: the resource can be used, and it no longer exists.
    ready: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    # States from which the resource never becomes ready.
    failed: frozenset[str] = frozenset({"FAILED"})
    defaults: Mapping[str, Any] = field(default_factory=dict)
    # Inputs of the provider that the API's models lack.
    extra: frozenset[str] = frozenset()
    # The input with the unique name, which by default is derived from the resource's.
    named: str = ""
    # How a stack file uses an existing one, for the remedy when the name is taken; `{}` is the name.
    existing: str = ""
    # A class in the folder `behaviours` of the cloud's table, for what a row cannot describe.
    behaviour: str = ""
