# SPDX-License-Identifier: Apache-2.0
"""The inputs of a run resource, among them the job as OpenPAI gets it. `pulumi up` starts runs with them, and so does a
rehearsal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.openpai.job import protocol_of
from components.openpai.plan import OpenPaiJobPlan, OpenPaiPlan
from components.plan.model import RunPlan, expand_references
from components.plan.packed_code import pack_folder
from schemas.model import Secret


@dataclass(frozen=True, slots=True)
class RunFiles:
    """What a run needs from files: its packed code, and the text of the certificate."""

    code: str | None = None
    certificate: str | None = None


def read_files(plan: OpenPaiPlan, job: OpenPaiJobPlan, folder: Path) -> RunFiles:
    """Paths in the plan start at `folder`. Raises OSError and UnicodeError."""
    code = pack_folder((folder / job.code.folder).resolve()) if job.code and job.code.folder else None
    named = plan.cluster.certificate
    return RunFiles(code, (folder / named).read_text("utf-8") if named else None)


def openpai_run_inputs(
    plan: OpenPaiPlan, job: OpenPaiJobPlan, run: RunPlan, files: RunFiles, seal: Callable[[str], Any]
) -> dict[str, Any]:
    """`seal`: makes a Pulumi secret of a text, or returns it unchanged."""
    cluster = plan.cluster
    inputs = {
        "platform": plan.platform,
        "cluster": {"uri": cluster.uri, "user": cluster.user, "virtualCluster": cluster.virtual_cluster},
        "token": seal(cluster.token.value or "") if cluster.token else None,
        "certificate": files.certificate,
        "protocol": _seal_secrets(protocol_of(plan, job, run, files.code), seal),
        "displayName": run.display_name,
        "tags": {**plan.tags, "job": job.name, "run": run.name},
        "nodes": [{"name": node.name, "role": node.role, "rank": node.rank} for node in run.nodes],
        "image": expand_references(job.image, {"registry": plan.registry_address}),
        "maximumRuntimeMinutes": job.maximum_runtime_minutes,
        **run.turn_inputs,
        # Only our launcher reads it.
        "expects": job.expects if job.start == "launcher" else None,
        "until": run.until,
        "attempt": run.attempt,
    }
    return {key: value for key, value in inputs.items() if value is not None}


def _seal_secrets(value: Any, seal: Callable[[str], Any]) -> Any:
    if isinstance(value, Secret):
        return seal(value.value or "")
    if isinstance(value, Mapping):
        return {key: _seal_secrets(item, seal) for key, item in value.items()}
    return [_seal_secrets(item, seal) for item in value] if isinstance(value, list) else value
