# SPDX-License-Identifier: Apache-2.0
"""The values of references that a plan leaves to OCI, read from what is deployed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.oci.client.calls import attempt
from components.oci.client.deployed import Deployed
from components.oci.client.session import Session
from components.oci.client.status_place import parse_folder
from components.oci.plan import OciPlan
from components.oci.registry import registry_host
from components.plan.naming import expand
from components.platform.calls import Call
from components.platform.launch import launch_document
from components.platform.overlay import Overlay
from components.platform.starting_tries import filled
from components.platform.tries import TryError
from schemas.model import EnvValue, Secret

# References of a plan that only OCI fills in, and OCIDs: on the local cloud, others stand in for them.
OPEN_TEXT = re.compile(r"\$\{[^}]*\}|ocid1\.[a-z0-9._-]+", re.IGNORECASE)


def overlay_with(values: Mapping[str, str]) -> Overlay:
    return Overlay(OPEN_TEXT, lambda text: expand(text, values))


def reference_values(session: Session, call: Call, plan: OciPlan, deployed: Deployed) -> dict[str, str]:
    """Those that can be known without the stack's state."""
    client = session.client("object_storage")
    namespace = str(attempt(call, "Read the namespace", lambda: client.get_namespace()).data)
    values = {"namespace": namespace}
    if "registry" not in plan.taken:
        values["registry"] = f"{registry_host(plan.region)}/{namespace}/{plan.registry.repository}"
    if bucket := _bucket(plan, deployed, namespace):
        values["bucket"] = bucket
    return values


def _bucket(plan: OciPlan, deployed: Deployed, namespace: str) -> str | None:
    """Where the deployed run left its files; without one, the stack's own bucket."""
    for node in (deployed.like or {}).get("nodes", ()):
        place = parse_folder(launch_document(deployed.variables(node)).get("folder"))
        if place is not None:
            return f"oci://{place.bucket}@{place.namespace}"
    return None if "bucket" in plan.taken else f"oci://{plan.bucket.name}@{namespace}"


@dataclass(frozen=True)
class PlanFiller:
    """`components.oci.run_inputs.Filler` for a job without runs: there is nothing deployed to repeat."""

    values: Mapping[str, str]

    def environment(self, values: Mapping[str, EnvValue]) -> Mapping[str, Any]:
        return {name: self._text(name, value) for name, value in values.items()}

    def document(self, value: Mapping[str, Any]) -> str:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return filled("its launch document", text, self.values)

    def _text(self, name: str, value: EnvValue) -> str:
        if not isinstance(value, Secret):
            return filled(name, value, self.values)
        if value.value is None:
            raise TryError(
                f"`{name}` is a secret that only the stack's own key opens, and no run of the job has it yet: "
                f"give it with `--env {name}=…`, or add a run to the stack file"
            )
        return value.value
