# SPDX-License-Identifier: Apache-2.0
"""What OCI is told about a run: the environment variables of its nodes, and the job that it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.oci.ads_documents import ads_document_of_run
from components.oci.plan import OciJobPlan, OciPlan
from components.oci.run_inputs import Where, make_run_inputs
from components.plan.documents import PLANNED_VALUES, PlanDocuments
from components.plan.model import RunPlan


def _document_of_run(plan: OciPlan, job: OciJobPlan, run: RunPlan, folder: Path) -> dict[str, Any]:
    logs = plan.logs if plan.logs.enabled else None
    where = Where(
        job=job.display_name,
        project=plan.project.project or plan.project.name,
        image=job.image,
        log_group=logs and (logs.group or logs.group_name),
        log=logs and (logs.log or logs.log_name),
    )
    return make_run_inputs(plan, job, run, where, PLANNED_VALUES)


PLAN_DOCUMENTS = PlanDocuments(_document_of_run, {"ads": ads_document_of_run})
