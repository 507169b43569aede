# SPDX-License-Identifier: Apache-2.0
"""What is deployed, with the difference that the try makes. Pure.

A try repeats the nodes of a deployed run. The stack file gives two plans: one of that run, one of the try. Only where
these two differ does the try get a value of its own; everything else is what was deployed, secrets included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.plan.model import NodePlan
from components.platform.tries import TryError
from schemas.model import EnvValue, Secret

LAUNCH = "TRAINYARD_LAUNCH"
Fill = Callable[[str], str]
Environment = Mapping[str, str]
# Parts of a launch document, by the key of the stack file that people know. All others follow from the framework.
KEYS = {
    "command": "command", "role": "roles", "roles": "roles", "retry": "roles", "ports": "ports", "options": "options",
    "processes": "options", "secrets": "env", "stallMinutes": "stallMinutes", "job": "was", "run": "was",
    "folder": "bucket", "checkpoints": "bucket", "attempt": "attempt",
}  # fmt: skip


@dataclass(frozen=True)
class Overlay:
    """`open_text` is what a plan leaves to the platform: there, anything may be deployed. `fill` fills that in."""

    open_text: re.Pattern[str]
    fill: Fill

    def apply(self, deployed: Environment, like: NodePlan, own: NodePlan) -> dict[str, str]:
        """The variables of one node of the try."""
        made = dict(deployed)
        for name in _differing(like.environment, own.environment):
            if name in like.environment and not self.fits(like.environment[name], deployed.get(name)):
                raise TryError(_cannot_tell(name))
            made.pop(name, None)
            if name in own.environment:
                value = own.environment[name]
                made[name] = value.value or "" if isinstance(value, Secret) else self.fill(value)
        document = _document(deployed)
        for key in _differing(like.launch, own.launch):
            if not self._same(like.launch.get(key), document.get(key)):
                raise TryError(_cannot_tell(KEYS.get(key, key)))
            document[key] = json.loads(self.fill(json.dumps(own.launch[key])))
        return {**made, LAUNCH: json.dumps(document, sort_keys=True, separators=(",", ":"))}

    def differences(self, deployed: Environment, like: NodePlan) -> Iterator[str]:
        """Keys of the stack file that say something else than this deployed node."""
        variables = {name: value for name, value in deployed.items() if name != LAUNCH}
        for name in sorted({*variables, *like.environment}):
            if name not in like.environment or not self.fits(like.environment[name], variables.get(name)):
                yield f"env.{name}"
        document = _document(deployed)
        for key in sorted({*document, *like.launch}):
            if not self._same(like.launch.get(key), document.get(key)):
                yield KEYS.get(key, "framework")

    def fits(self, planned: EnvValue, deployed: str | None) -> bool:
        """Whether a text of the plan can have become the deployed one. Nobody can read a secret of the file here."""
        if deployed is None or isinstance(planned, Secret):
            return deployed is not None
        if planned == deployed:
            return True
        pattern = ".*".join(re.escape(part) for part in self.open_text.split(planned))
        return self.open_text.search(planned) is not None and re.fullmatch(pattern, deployed, re.DOTALL) is not None

    def _same(self, planned: Any, deployed: Any) -> bool:
        if isinstance(planned, str) and isinstance(deployed, str):
            return self.fits(planned, deployed)
        if isinstance(planned, Mapping) and isinstance(deployed, Mapping):
            return planned.keys() == deployed.keys() and all(self._same(planned[key], deployed[key]) for key in planned)
        if isinstance(planned, Sequence) and isinstance(deployed, Sequence) and not isinstance(planned, str):
            return len(planned) == len(deployed) and all(map(self._same, planned, deployed))
        return bool(planned == deployed)


def _differing(like: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    return sorted(key for key in {*like, *own} if key not in like or key not in own or like[key] != own[key])


def _document(deployed: Environment) -> dict[str, Any]:
    try:
        document = json.loads(deployed.get(LAUNCH, ""))
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise TryError("the deployed run has no launch document: it was not started by trainyard")
    return document


def _cannot_tell(what: str) -> str:
    return (
        f"`{what}` has changed in the stack file since it was deployed, and the try changes it as well: it cannot be "
        "told what of the old value stays. An `up` of the stack deploys the change."
    )
