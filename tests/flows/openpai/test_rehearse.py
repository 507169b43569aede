# SPDX-License-Identifier: Apache-2.0
"""Rehearsals of stacks on OpenPAI: jobs of a user without further rights on a local cluster. The report lists all
stand-ins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from components.openpai.plan import openpai_plan
from components.plan.build import plan_of
from components.plan.model import expand_references
from localcloud.environments.find import MissingEnvironment
from schemas.judge import judge_file
from tests.support.examples import OPENPAI_EXAMPLES, STACKS, stack_file
from tests.support.rehearsing import Rehearsals
from trainyard.local.environments import find_job_environment

pytestmark = pytest.mark.engine

# One without the launcher, on two tasks that must meet.
ALWAYS = ["openpai-ddp-nccl-apex"]
# Six jobs in one stack, which test_training.py trains.
SEVERAL = "openpai-as-is"
ALONE = [name for name in OPENPAI_EXAMPLES if name != SEVERAL]
ASKED = ALONE if os.environ.get("TRAINYARD_TORTURE") else ALWAYS


@pytest.mark.parametrize("name", ASKED)
def test_an_example_is_rehearsed_and_the_report_lists_its_stand_ins(name: str, tmp_path: Path) -> None:
    plan = openpai_plan(plan_of(judge_file(stack_file(name))))
    ((job, planned),) = plan.jobs.items()
    missing = find_job_environment(planned, STACKS)
    if isinstance(missing, MissingEnvironment):
        pytest.skip(f"{missing.name}: {missing.reason}")
    rehearsals = Rehearsals.of_examples(tmp_path, name)
    report = rehearsals.report(name, "--prove")
    assert report["verdict"] == "passed", report
    (run,) = report["runs"]
    assert len(run["ranks"]) == planned.nodes
    assert all(rank["joined"] and rank["finished"] for rank in run["ranks"])
    assert "result.json" in {one["name"] for one in run["artifacts"]}
    not_proven = "\n".join(report["notProven"])
    image = expand_references(planned.image, {"registry": plan.registry_address})
    assert f"job {job}: {image} is not pulled" in not_proven
    assert f"job {job}: not rehearsed: GPUs" in not_proven
    assert ("NCCL" in not_proven) == ("nccl" in name)
    assert ("can import apex" in not_proven) == (name.startswith("openpai-ddp"))
    assert ("no plugin ssh" in not_proven) == any(plugin.plugin == "ssh" for plugin in planned.plugins)
    # There are no rules or policies to remove, so the report says that nothing is proved.
    assert "access: OpenPAI has no policies to remove" in not_proven
    assert "ports: OpenPAI has no rules between tasks to remove" in not_proven
    assert report["proof"]["outcomes"] == []
    assert rehearsals.left() == []
