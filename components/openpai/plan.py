# SPDX-License-Identifier: Apache-2.0
"""The Plan of OpenPAI: what every platform's says, and what only OpenPAI has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from components.openpai.stack import ImageAuth, Plugin, Prerequisite, Priority, Sku, Start
from components.plan.model import JobPlan, Plan
from schemas.model import Secret


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    uri: str
    user: str
    token: Secret | None
    virtual_cluster: str
    certificate: str | None


@dataclass(frozen=True, slots=True)
class StoragePlan:
    name: str
    mount: str


@dataclass(frozen=True, slots=True)
class StorePlan:
    """Where checkpoints and results go. `uri` stands for `${bucket}`. Variables lead tasks to a bucket."""

    uri: str
    storage: StoragePlan | None = None
    variables: Mapping[str, str | Secret] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskRolePlan:
    """What its tasks get, how often they are tried again, when it is complete, and its ports: label -> how many."""

    retry_count: int
    min_failed: int
    min_succeeded: int
    sku: Sku
    ports: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPaiJobPlan(JobPlan):
    """`gang`: no task goes on without the others, so OpenPAI starts all of them, again too."""

    start: Start
    priority: Priority | None
    gang: bool
    retry_count: int
    task_roles: Mapping[str, TaskRolePlan]
    image_auth: ImageAuth | None
    plugins: tuple[Plugin, ...]
    prerequisites: tuple[Prerequisite, ...]
    parameters: Mapping[str, str]

    @property
    def by_shell(self) -> bool:
        return self.start == "as-is"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPaiPlan(Plan):
    cluster: ClusterPlan
    store: StorePlan
    registry_address: str
    jobs: Mapping[str, OpenPaiJobPlan] = field(default_factory=dict)


def openpai_plan(plan: Plan) -> OpenPaiPlan:
    """The same plan with this platform's type. Raises TypeError if it is of another platform."""
    if not isinstance(plan, OpenPaiPlan):
        raise TypeError(f"{plan.stack} runs on {plan.platform}")
    return plan


def openpai_job(job: JobPlan) -> OpenPaiJobPlan:
    """The same job with this platform's type. Raises TypeError if it is of another platform."""
    if not isinstance(job, OpenPaiJobPlan):
        raise TypeError(f"{job.name} is a job of another platform")
    return job
