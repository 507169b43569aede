# SPDX-License-Identifier: Apache-2.0
"""A review says of every resource what a preview by the real engine does, for every way in which jobs change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_team import Team
from tests.support.review_examples import git

pytestmark = pytest.mark.engine

# More of the framework `script`: a second role, and a port at which both meet.
MEETING = """
[roles.worker]
minimum = 0
mode = "WORKER"
why = "another node"
runs_command = true

[[ports]]
label = "meet"
listens = ["main"]
reached_from = ["main", "worker"]
default = 7400
why = "the nodes meet"
"""
# What the engine calls the kinds of a review.
KINDS = {"create": "created", "update": "changed", "replace": "replaced", "delete": "deleted"}
RUN, JOB = "trainyard:index:Run", "oci:DataScience/job:Job"


def jobs_before(job: Mapping[str, Any]) -> dict[str, Any]:
    job = {**job, "runs": {"base": {"until": "accepted"}}}
    jobs = {name: deepcopy(job) for name in ("renamed", "edited", "shrunk", "copied", "moved")}
    jobs["shrunk"]["runs"]["tuned"] = {"until": "accepted", "args": ["--points", "10"]}
    jobs["moved"] |= {"roles": {"main": 1, "worker": 1}, "ports": {"meet": 7400}}
    return jobs


def jobs_after(before: Mapping[str, Any]) -> dict[str, Any]:
    jobs = deepcopy(dict(before))
    jobs["named"] = {**jobs.pop("renamed"), "was": "renamed"}
    jobs["named"]["runs"] = {"best": {**jobs["named"]["runs"]["base"], "was": "base"}}
    jobs["edited"]["command"] = "train.py --epochs 6"
    del jobs["shrunk"]["runs"]["tuned"]
    jobs["copy"] = deepcopy(jobs["copied"])
    jobs["moved"]["ports"] = {"meet": 7500}
    return jobs


def operations_of_engine(preview: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """By type and name: what the steps of a preview do with the resource, in a review's words."""
    found = {}
    for step in preview["steps"]:
        state = step.get("newState") or step["oldState"]
        if state["custom"] and not state["type"].startswith("pulumi:") and step["op"] in KINDS:
            found[state["type"], step["urn"].rpartition("::")[2]] = KINDS[step["op"]]
    return found


def test_a_review_says_what_a_preview_does_with_each_resource(tmp_path: Path) -> None:
    team = Team(tmp_path)
    try:
        framework = team.stacks / "local" / "script.toml"
        framework.write_text(framework.read_text("utf-8") + MEETING, "utf-8")
        jobs = jobs_before(team.written("jobs")["line"])
        team.configure("jobs", jobs)
        git(team.stacks, "init", "-q")
        git(team.stacks, "add", "-A")
        git(team.stacks, "commit", "-qm", "before")
        team.trainyard("up", "local")

        team.configure("jobs", jobs_after(jobs))
        by_engine = operations_of_engine(json.loads(team.attempt("preview", "local", "--json", "--show-sames").stdout))
        changes = team.review("--against", "HEAD")["changes"]
        assert {(change["type"], change["name"]): change["kind"] for change in changes} == by_engine
        of_runs_and_jobs = {
            name: (kind, by_engine.get((JOB, name.partition("/")[0])))
            for (token, name), kind in by_engine.items()
            if token == RUN
        }
        assert of_runs_and_jobs == {
            "named/best": ("changed", "changed"),
            "edited/base": ("replaced", None),
            "shrunk/tuned": ("deleted", None),
            "copy/base": ("created", "created"),
            "moved/base": ("replaced", None),
        }
    finally:
        team.end()
