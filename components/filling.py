# SPDX-License-Identifier: Apache-2.0
"""Fills in the references that a plan leaves to its platform, with values that only the platform knows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi

from components.plan.model import expand
from schemas.model import EnvValue, Secret


@dataclass(frozen=True)
class Filler:
    """Each output costs Pulumi a task or two, and a thousand runs need the same few. So each is made only once."""

    _filled: dict[str, pulumi.Input[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _together: dict[tuple[str, ...], pulumi.Output[dict[str, str]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def answers(self) -> Mapping[str, pulumi.Output[str]]:
        """The platform's references, by their names."""
        raise NotImplementedError

    def fill(self, text: str) -> pulumi.Input[str]:
        """A text of the plan, with the remaining references filled in by the platform's values."""
        if text not in self._filled:
            self._filled[text] = self._fill(text)
        return self._filled[text]

    def _fill(self, text: str) -> pulumi.Input[str]:
        if "${" not in text:
            return text
        wanted = tuple(name for name in self.answers if f"${{{name}}}" in text)
        if wanted not in self._together:
            self._together[wanted] = pulumi.Output.all(**{name: self.answers[name] for name in wanted})
        return self._together[wanted].apply(lambda values: expand(text, values))

    def environment(self, values: Mapping[str, EnvValue]) -> dict[str, pulumi.Input[str]]:
        return {
            name: pulumi.Output.secret(value.value or "") if isinstance(value, Secret) else self.fill(value)
            for name, value in values.items()
        }

    def document(self, value: Mapping[str, Any]) -> pulumi.Input[str]:
        # Every node's document is different, so there is nothing to cache.
        return self._fill(json.dumps(value, sort_keys=True, separators=(",", ":")))
