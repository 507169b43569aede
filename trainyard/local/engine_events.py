# SPDX-License-Identifier: Apache-2.0
"""The errors of one `pulumi up`, from the engine's event log. In its output they are hard to find."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# The engine's summary after the errors of resources, and its prefix to the errors of a provider.
_SUMMARY = "update failed"
_ONE_REASON = "1 error occurred:\n\t* "


@dataclass(frozen=True)
class EngineDiagnostic:
    """One error. `urn` is empty if it does not belong to a resource."""

    urn: str
    message: str

    @property
    def title(self) -> str:
        """The resource, as the engine's own output calls it."""
        if not self.urn:
            return "up"
        *_, kinds, name = self.urn.split("::", 3)
        package, module, kind = kinds.rpartition("$")[2].split(":")
        return f"{package}:{module.partition('/')[0]}:{kind} ({name})"


def errors_in(log: Path) -> list[EngineDiagnostic]:
    """Each error once; none if the engine ended before it wrote anything."""
    if not log.exists():
        return []
    errors: dict[EngineDiagnostic, None] = {}
    for line in log.read_text("utf-8", "replace").split("\n"):
        try:
            event = json.loads(line)
        except ValueError:
            continue  # the last line of an engine that was killed
        if not isinstance(event, Mapping):
            continue
        diagnostic = event.get("diagnosticEvent") or {}
        text = str(diagnostic.get("message", "")).strip().removeprefix(_ONE_REASON)
        if diagnostic.get("severity") == "error" and text != _SUMMARY:
            errors[EngineDiagnostic(str(diagnostic.get("urn") or ""), text)] = None
        policy = event.get("policyEvent") or {}
        if policy.get("enforcementLevel") == "mandatory":
            rule = f"the policy {policy.get('policyName')} refuses this: {str(policy.get('message', '')).strip()}"
            errors[EngineDiagnostic(str(policy.get("resourceUrn") or ""), rule)] = None
    return list(errors)
