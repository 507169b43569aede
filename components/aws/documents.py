# SPDX-License-Identifier: Apache-2.0
"""What the machines of a job are told about a run: the content of its ticket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.aws.plan import AwsDl1Plan, AwsJobPlan
from components.aws.run_inputs import aws_run_inputs
from components.plan.documents import PLANNED_VALUES, PlanDocuments
from components.plan.model import RunPlan


def _ticket_document(plan: AwsDl1Plan, job: AwsJobPlan, run: RunPlan, folder: Path) -> dict[str, Any]:
    where = {"bucket": plan.bucket.name, "logGroup": plan.logs.group_name if plan.logs.enabled else None}
    return aws_run_inputs(plan, job, run, where, PLANNED_VALUES)


PLAN_DOCUMENTS = PlanDocuments(_ticket_document)
