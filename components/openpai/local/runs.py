# SPDX-License-Identifier: Apache-2.0
"""Starts and watches runs on the local cluster, in the name of a plain user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.openpai.client.status import Looker
from components.openpai.plan import OpenPaiJobPlan, OpenPaiPlan
from components.openpai.run_inputs import read_files, run_inputs
from components.plan.model import Plan, RunPlan
from components.platform.calls import Tell, call_of
from components.platform.rehearsed_runs import Answers, LookedAt, People, StartedRun, start_run
from components.platform.status import WantedRuns


@dataclass(frozen=True)
class OpenPaiAnswers(Answers):
    """`stacks`: the folder of the stack file, where the code of its jobs is. All that a job's text refers to is in the
    plan already."""

    stacks: Path


def start(
    who: People, plan: OpenPaiPlan, job: OpenPaiJobPlan, run: RunPlan, answers: OpenPaiAnswers, tell: Tell
) -> StartedRun:
    files = read_files(plan, job, answers.stacks)
    inputs: dict[str, Any] = run_inputs(plan, job, run, files, lambda secret: secret)
    cluster: Mapping[str, Any] = inputs["cluster"]
    own = {**inputs, "cluster": {**cluster, "user": who.session.name}}
    return start_run(who, who.session.runs, plan, job, run, own, tell)


def watch(who: People, plan: Plan, started: StartedRun, tell: Tell) -> LookedAt:
    wanted = WantedRuns(plan.stack, started.job.name, started.run.name)
    looker = Looker(who.session.runs, call_of("rehearse", tell), wanted, who.session.storages)
    return LookedAt(who.session.runs, looker, started, tell)
