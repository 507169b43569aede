# SPDX-License-Identifier: Apache-2.0
"""What OpenPAI is told about a run: the job in the form in which it is submitted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from components.openpai.client.jobs import job_of
from components.openpai.job import PARAMETER
from components.openpai.plan import OpenPaiJobPlan, OpenPaiPlan
from components.openpai.run_inputs import openpai_run_inputs, read_files
from components.plan.documents import PlanDocuments
from components.plan.model import RunPlan
from components.plan.show import SECRET
from components.platform.inputs import with_defaults
from components.platform.runs import run_spec


def _protocol_document(plan: OpenPaiPlan, job: OpenPaiJobPlan, run: RunPlan, folder: Path) -> dict[str, Any]:
    """Packed code is shown by its size. The run's fingerprint, and its beginning in the name, need the whole inputs."""
    files = read_files(plan, job, folder)
    spec = run_spec("", with_defaults(openpai_run_inputs(plan, job, run, files, lambda text: SECRET)))
    document = job_of(replace(spec, fingerprint="(of the inputs)"), f"{run.display_name}-(fingerprint)")
    if files.code is not None:
        document["parameters"][PARAMETER] = f"(the packed code, {len(files.code)} bytes)"
    return document


PLAN_DOCUMENTS = PlanDocuments(_protocol_document)
