# SPDX-License-Identifier: Apache-2.0
"""Small stacks to plan with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from components.oci.plan import OciPlan
from components.oci.stack import OciAccess, OciJob, OciStack, Users
from schemas.model import Job, Role, Run, Shape
from tests.support.oci_plans import oci_plan

COMPARTMENT = "ocid1.compartment.oc1..vision"
TENANCY = "ocid1.tenancy.oc1..company"
NETWORKS = "ocid1.compartment.oc1..networks"


def job(framework: str = "pytorch", roles: Mapping[str, int] | None = None, **changes: Any) -> Job:
    sample = Job(
        framework=framework,
        image="${registry}:1.0",
        shape=Shape("VM.GPU.A10.1"),
        roles={name: Role(count) for name, count in (roles or {"main": 1, "worker": 2}).items()},
        command="train.py",
        runs={"base": Run()},
    )
    return replace(sample, **changes)


def own(job: Job) -> OciJob:
    """The job, with default values for OCI's own keys."""
    return job if isinstance(job, OciJob) else OciJob(**{one.name: getattr(job, one.name) for one in fields(job)})


def stack(*, jobs: Mapping[str, Job] | None = None, **changes: Any) -> OciStack:
    sample = OciStack(
        name="vision-dev",
        team="vision",
        environment="dev",
        region="us-ashburn-1",
        compartment=COMPARTMENT,
        tenancy=TENANCY,
        access=OciAccess(users=Users(group="scientists")),
        jobs={name: own(made) for name, made in ({"train": job()} if jobs is None else jobs).items()},
    )
    return replace(sample, **changes)


def plan(*, jobs: Mapping[str, Job] | None = None, **changes: Any) -> OciPlan:
    return oci_plan(stack(jobs=jobs, **changes))
