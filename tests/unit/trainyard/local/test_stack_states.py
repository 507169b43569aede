# SPDX-License-Identifier: Apache-2.0
"""Warnings about jobs, runs and roles that were probably renamed, from a state and a plan."""

from dataclasses import replace
from typing import Any

import pytest

from components.oci.local.stacks import OciLocalPlatform
from components.oci.stack import OciJob, OciStack
from components.plan.build import build_plan
from components.plan.model import Plan
from schemas.model import Role, Run, Shape, Was
from trainyard.local.stack_states import rename_warnings

OWN = {
    "mine": {
        "name": "mine",
        "summary": "two kinds of nodes",
        "rank": "in order",
        "roles": {
            role: {"minimum": 0, "mode": mode, "why": "it trains", "runs_command": True}
            for role, mode in (("main", "MAIN"), ("lead", "MAIN"), ("worker", "WORKER"))
        },
        "environment": {"LEAD": "{address.lead}"},
    }
}
JOB = OciJob(
    "mine", "${registry}:1", Shape("VM.Standard3.Flex", 1, 8), {"main": Role(1), "worker": Role(2)}, "train.py"
)


def _plan(**jobs: OciJob) -> Plan:
    return build_plan(OciStack(name="s", team="team", environment="dev", region="us-ashburn-1", jobs=jobs), OWN)


def _rows(plan: Plan) -> list[dict[str, Any]]:
    """The rows of a state that such a plan was brought up to."""
    rows: list[dict[str, Any]] = []
    for name, job in plan.jobs.items():
        rows.append({"type": "trainyard:oci:Job", "urn": f"urn:pulumi:s::p::trainyard:oci:Job::{name}"})
        for key, run in job.runs.items():
            inputs = {"nodes": [{"role": node.role} for node in run.nodes]}
            rows.append({"type": "trainyard:index:Run", "urn": f"urn:pulumi:s::p::x::{name}/{key}", "inputs": inputs})
    return rows


BEFORE = _rows(_plan(line=replace(JOB, runs={"base": Run(), "tuned": Run()})))
BOTH = {"base": Run(), "tuned": Run()}


def _with_role(role: Role) -> OciJob:
    return replace(JOB, roles={"lead": role, "worker": Role(2)}, runs=BOTH)


@pytest.mark.parametrize(
    ("jobs", "parts"),
    [
        ({"line": replace(JOB, runs=BOTH)}, []),
        ({"line": replace(JOB, runs={"base": Run()})}, []),
        ({"line": replace(JOB, runs={**BOTH, "more": Run()})}, []),
        ({"curve": replace(JOB, runs=BOTH)}, ["job line", "records of its 2 runs", "`was: line` under curve "]),
        ({"curve": replace(JOB, runs=BOTH, was=Was(("line",)))}, []),
        ({"line": replace(JOB, runs={"base": Run(), "more": Run()})}, ["run line/tuned", "`was: tuned` under more "]),
        ({"line": replace(JOB, runs={"base": Run(), "more": Run(was=Was(("tuned",)))})}, []),
        (
            {"curve": replace(JOB, runs={"base": Run(), "a": Run(), "b": Run()}, was=Was(("older", "line")))},
            ["run curve/tuned", "`was: tuned` under one of a, b "],
        ),
        ({"line": _with_role(Role(1))}, ["role main of job line", "2 runs of the job are", "`was: main` under lead "]),
        ({"line": _with_role(Role(1, was=Was(("main",))))}, []),
    ],
)
def test_a_probable_renaming_is_named_with_the_remedy(jobs: dict[str, OciJob], parts: list[str]) -> None:
    told = list(rename_warnings(BEFORE, _plan(**jobs), OciLocalPlatform()))
    assert bool(told) == bool(parts)
    assert all(part in told[0] for part in parts), told


def test_a_renamed_run_keeps_the_variables_of_its_oldest_name() -> None:
    """A renaming changes no variable or argument of a node, neither names nor paths."""
    job = replace(JOB, image="${registry}:${job}", command="train.py {address.main}", env={"WHAT": "${job}/${run}"})
    before = _plan(line=replace(job, runs={"base": Run()})).jobs["line"]
    renamed = replace(
        job,
        command="train.py {address.lead}",
        roles={"lead": Role(1, was=Was(("main", "head"))), "worker": Role(2)},
        runs={"best": Run(was=Was(("base", "better")))},
        was=Was(("line", "arc")),
    )
    after = _plan(curve=renamed).jobs["curve"]
    # The framework's own text names the role as well.
    assert [node.launch["environment"] for node in after.runs["best"].nodes] == [{"LEAD": "{address.main}"}] * 3
    assert [without(node.launch) for node in after.runs["best"].nodes] == [
        without(node.launch) for node in before.runs["base"].nodes
    ]
    assert [(node.name, node.role, node.environment) for node in after.runs["best"].nodes] == [
        (node.name, node.role, node.environment) for node in before.runs["base"].nodes
    ]
    assert (after.called, after.image) == (before.called, before.image)
    assert after.display_name == "team-dev-curve"


def without(launch: Any) -> dict[str, Any]:
    return {key: value for key, value in launch.items() if key != "environment"}
