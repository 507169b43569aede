# SPDX-License-Identifier: Apache-2.0
"""Waivers: who answers for a rule that a stack breaks on purpose, and until when. They are in the stack file.

A waiver turns a failure into a remark that names it. It hides nothing, and from the day after its last one on it counts
for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

# The key of the stack file, as the engine gives it to a pack.
KEY = "trainyard:waivers"


@dataclass(frozen=True, slots=True)
class Waiver:
    reason: str
    until: date

    def holds(self, on: date) -> bool:
        return on <= self.until

    @property
    def ended(self) -> str:
        return f"its waiver ended on {self.until.isoformat()}"

    def __str__(self) -> str:
        return f"waived until {self.until.isoformat()}: {self.reason}"


def read_waivers(value: Any) -> Mapping[str, Waiver]:
    """The waivers of a stack, by rule. What has no reason or no date is none: `trainyard check` reports it."""
    if not isinstance(value, Mapping):
        return {}
    found = {str(rule): _waiver(said) for rule, said in value.items() if isinstance(said, Mapping)}
    return {rule: waiver for rule, waiver in found.items() if waiver is not None}


def from_json(text: str) -> Mapping[str, Waiver]:
    """The same from a value of Pulumi's configuration, which is JSON in a text."""
    try:
        return read_waivers(json.loads(text)) if text else {}
    except ValueError:
        return {}


def _waiver(said: Mapping[str, Any]) -> Waiver | None:
    reason = str(said.get("reason") or "").strip()
    try:
        return Waiver(reason, date.fromisoformat(str(said.get("until")))) if reason else None
    except ValueError:
        return None
