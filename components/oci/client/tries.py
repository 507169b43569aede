# SPDX-License-Identifier: Apache-2.0
"""Tries on OCI Data Science: job runs of the deployed job, with overrides of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from components.oci.client.compartment_runs import CompartmentRuns
from components.oci.client.deployed import (
    Deployed,
    changes_since_deployment,
    find_deployed_job,
    overlay_with_references,
    reference_values,
)
from components.oci.plan import OciPlan, oci_plan
from components.oci.run_inputs import Where, make_run_inputs
from components.oci.statements import statements_for_users
from components.platform.calls import Call
from components.platform.tries import PlanFiller, PlannedTry, ReadyTry, TryError, repeat_deployed_run
from components.platform.values import Properties

# The activities of a try, in the words of the catalog's grants.
_DONE = ("start runs", "watch runs", "join subnet")


def prepare_oci_try(runs: CompartmentRuns, call: Call, planned: PlannedTry, folder: Path) -> ReadyTry:
    if not runs.compartment:
        raise TryError("the stack file names no compartment: name it with --place")
    deployed = find_deployed_job(runs, call, planned)
    plan = replace(oci_plan(planned.plan), compartment=runs.compartment)
    values = reference_values(runs.session, call, plan, deployed)
    inputs = _inputs_of_try(planned, plan, deployed, values)
    return ReadyTry(planned, inputs, tuple(changes_since_deployment(runs.session, planned, deployed, folder)))


def _inputs_of_try(planned: PlannedTry, plan: OciPlan, deployed: Deployed, values: dict[str, str]) -> Properties:
    if deployed.like is None or planned.like is None:
        where = Where(deployed.job.id, deployed.job.project_id, None, deployed.log_group, deployed.log)
        return make_run_inputs(plan, planned.job, planned.run, where, PlanFiller(values))
    return repeat_deployed_run(planned, deployed.like, overlay_with_references(values), deployed.variables)


def missing_statements(runs: CompartmentRuns, planned: PlannedTry) -> str:
    """The statements that give the access for a try, and who lacks one of them."""
    who = f"{runs.session.credentials.get('user', 'the caller')} (profile {runs.session.profile or 'DEFAULT'})"
    statements = statements_for_users(replace(oci_plan(planned.plan), compartment=runs.compartment), _DONE)
    if not statements:
        return (
            f"{who} may not do that, and the stack file names no users: only administrators can try its jobs.\n"
            "`trainyard:access: { users: … }` gives the people of a group what they need."
        )
    lines = "\n".join(f"  {statement}" for statement in statements)
    return (
        f"{who} may not do that. At least one of these statements is not in force for this caller:\n{lines}\n"
        "If they are in force, the caller is not in the group. `trainyard access` shows all of the stack."
    )
