# SPDX-License-Identifier: Apache-2.0
"""Tries on OCI Data Science: job runs of the deployed job, with overrides of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from components.oci.client import job_runs
from components.oci.client.calls import ACCESS_CODES
from components.oci.client.deployed import (
    Deployed,
    PlanFiller,
    changes_of,
    find_deployed,
    overlay_with,
    reference_values,
)
from components.oci.client.runs import OciRuns
from components.oci.client.session import Session, compartment_of_caller, session_of_caller
from components.oci.plan import OciPlan, oci_plan
from components.oci.run_inputs import Where, run_inputs
from components.oci.statements import statements_for_users
from components.platform.calls import Call, ProviderError, call_of
from components.platform.runs import NodeRun, RunSpec
from components.platform.tries import PlannedTry, ReadyTry, TryError, TryQuestion, spec_of_try
from components.platform.values import Properties

T = TypeVar("T")
# What whoever tries a job does, in the words of the catalog's grants.
_DONE = ("start runs", "watch runs", "join subnet")


@dataclass
class OciTries:
    """`components.platform.tries.TryPlatform`."""

    session: Session
    compartment: str
    call: Call
    question: TryQuestion

    @property
    def region(self) -> str | None:
        return self.question.cloud.region if self.question.cloud else None

    @cached_property
    def _runs(self) -> OciRuns:
        return OciRuns(self.session)

    def prepare(self, planned: PlannedTry) -> ReadyTry:
        deployed = self._allowed(planned, lambda: find_deployed(self.session, self.call, self.compartment, planned))
        inputs = self._inputs(planned, deployed)
        folder = self.question.judged.folder
        return ReadyTry(planned, inputs, tuple(changes_of(self.session, planned, deployed, folder)))

    def start(self, ready: ReadyTry) -> Sequence[NodeRun]:
        spec, made = spec_of_try(ready), list[NodeRun]()
        try:
            self._allowed(ready.planned, lambda: made.extend(self._runs.ensure(self.call, spec, ())))
        except BaseException:
            self._end(spec)
            raise
        return made

    def _end(self, spec: RunSpec) -> None:
        """Ends the nodes that exist: without the others they would wait, and cost money."""
        runs = list(self._runs.runs_of_job(self.call, spec.own["compartment"], spec.own["job"], 0))
        own = [run for run in runs if (run.freeform_tags or {}).get(job_runs.RUN_TAG) == spec.fingerprint]
        self._runs.cancel(self.call, [job_runs.node_run(run) for run in own])

    def _inputs(self, planned: PlannedTry, deployed: Deployed) -> Properties:
        plan = oci_plan(planned.plan)
        values = reference_values(self.session, self.call, plan, deployed)
        if deployed.like is None or planned.like is None:
            where = Where(deployed.job.id, deployed.job.project_id, None, deployed.log_group, deployed.log)
            here = replace(plan, compartment=self.compartment)
            return run_inputs(here, planned.job, planned.run, where, PlanFiller(values))
        like = {node.name: node for node in planned.like.nodes}
        own = {node.name: node for node in planned.run.nodes}
        nodes = []
        for node in deployed.like["nodes"]:
            if node["name"] not in own:
                raise TryError(f"the node {node['name']} is deployed, but no longer in the stack file")
            variables = deployed.variables(node)
            made = overlay_with(values).apply(variables, like[node["name"]], own[node["name"]])
            nodes.append({**node, "environment": made})
        tags = {**deployed.like["tags"], "run": planned.run.name}
        shown = {"displayName": planned.run.display_name, "tags": tags}
        return {**deployed.like, **shown, "nodes": nodes, "attempt": 1, "until": "accepted"}

    def _allowed(self, planned: PlannedTry, ask: Callable[[], T]) -> T:
        """What `ask` gives. A refusal for lack of access says which statement gives it, and to whom."""
        try:
            return ask()
        except ProviderError as error:
            cause = error.__cause__
            if (getattr(cause, "status", None), getattr(cause, "code", None)) not in ACCESS_CODES:
                raise
            raise TryError(f"{error.cause}\n{self._missing(oci_plan(planned.plan))}") from error

    def _missing(self, plan: OciPlan) -> str:
        who = f"{self.session.credentials.get('user', 'the caller')} (profile {self.session.profile or 'DEFAULT'})"
        statements = statements_for_users(replace(plan, compartment=self.compartment), _DONE)
        if not statements:
            return (
                f"{who} may not do that, and the stack file names no users: only administrators can try its jobs.\n"
                "`trainyard:access: { users: … }` gives the people of a group what they need."
            )
        lines = "\n".join(f"  {statement}" for statement in statements)
        return (
            f"{who} may not do that. It takes one of these statements that is not in force for this caller:\n{lines}\n"
            "If they are in force, the caller is not in the group. `trainyard access` shows all of the stack."
        )


def make(question: TryQuestion) -> OciTries:
    config, cloud = question.config, question.cloud
    session = session_of_caller(config, cloud, question.profile)
    compartment = compartment_of_caller(config, cloud, question.place)
    if not compartment:
        raise TryError("where is the stack? Its file names no compartment: name it with --place")
    return OciTries(session, compartment, call_of("run", question.tell), question)
