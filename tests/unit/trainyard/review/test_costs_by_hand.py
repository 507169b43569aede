# SPDX-License-Identifier: Apache-2.0
"""What a run costs at most, and what costs money while nothing runs: each case is computed by hand beside it.

Prices are the catalog's ($2 an hour for a VM.GPU.A10.1, $80 for a BM.GPU.H100.8, $0.0000571 for a GB of block storage),
or those of the case.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalog.platforms import require_capability
from components.plan.build import plan_of
from components.plan.show import to_plain_values
from components.platform.review import ReviewedResource, ReviewPlatform, Snapshot
from schemas.judge import judge_file
from tests.support.examples import STACKS
from trainyard.review.costs import stack_costs

OCI, AWS, PAI = "oci-pytorch-ddp", "aws-dl1-resnet", "openpai-as-is"
Config = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class CostCase:
    """`run`: dollars of a run of the stack's only job. `standing`: an hour while nothing runs. None: not known."""

    title: str
    stack: str
    run: float | None
    standing: float | None = 0.0
    change: Callable[[Config], object] = bool
    prices: Mapping[str, float] = field(default_factory=dict)
    resources: tuple[tuple[str, Mapping[str, Any]], ...] = ()


def job_with(**values: Any) -> Callable[[Config], object]:
    def change(config: Config) -> None:
        (job,) = config["trainyard:jobs"].values()
        job.update(values)

    return change


def on_compute_target(**target: Any) -> Callable[[Config], object]:
    def change(config: Config) -> None:
        config["trainyard:computeTargets"] = {"pool": target}
        job_with(computeTarget="pool", layout="node-groups")(config)

    return change


def two_roles(**retry: int) -> Callable[[Config], object]:
    """One task of `cpu1` and three of `gpu2`, four hours each."""

    def change(config: Config) -> None:
        jobs = config["trainyard:jobs"]
        (name, job), *_ = jobs.items()
        roles = {
            "main": {"replicas": 1, "shape": "cpu1", "retry": retry},
            "worker": {"replicas": 3, "shape": "gpu2", "retry": retry},
        }
        jobs.clear()
        jobs[name] = {**job, "maximumRuntimeMinutes": 240, "roles": roles}

    return change


AWS_PRICES = {"dl1.24xlarge": 13.0, "GB of disk": 0.0001}
NAT: tuple[tuple[str, Mapping[str, Any]], ...] = (("aws:ec2/natGateway:NatGateway", {}),)
CASES = (
    # 4 nodes x 24 h x ($2 + 100 GB x 0.0000571) = 96 x 2.00571. Two retries are part of the 24 hours.
    CostCase(title="OCI, with retries", stack=OCI, run=192.54816),
    CostCase(
        title="OCI, with retries without limit",
        stack=OCI,
        run=192.54816,
        change=job_with(roles={"main": {"replicas": 1, "retry": {"count": -1}}, "worker": 3}),
    ),
    # 100 x 720 h x ($80 + 100 x 0.0000571) = 72,000 x 80.00571.
    CostCase(
        title="OCI, a hundred H100 nodes for 30 days, without runs",
        stack=OCI,
        run=5760411.12,
        change=job_with(shape="BM.GPU.H100.8", roles={"main": 1, "worker": 99}, maximumRuntimeMinutes=43200, runs={}),
    ),
    # 4 x 24 h x ($2 + 10,000 GB x 0.0000571) = 96 x 2.571.
    CostCase(title="OCI, large disks", stack=OCI, run=246.816, change=job_with(blockStorageGb=10000)),
    # 4 x 24 h x (2 x $0.03 + 16 x $0.002 + 100 x 0.0000571) = 96 x 0.09771.
    CostCase(
        title="OCI, a flexible shape",
        stack=OCI,
        run=9.38016,
        change=job_with(shape={"name": "VM.Standard.E5.Flex", "ocpus": 2, "memoryGb": 16}, options={"backend": "gloo"}),
    ),
    # 40 machines x $2 stand; a run on them adds nothing.
    CostCase(
        title="OCI, a compute target",
        stack=OCI,
        run=0.0,
        standing=80.0,
        change=on_compute_target(shape="VM.GPU.A10.1", instances=40),
    ),
    # The target is somebody's: 4 nodes x 24 h x $3 of the team's own prices stand as long as it does.
    CostCase(
        title="OCI, somebody's compute target",
        stack=OCI,
        run=None,
        standing=None,
        change=on_compute_target(existing="pool-of-the-company"),
    ),
    # 2 machines x 24 h x $13. The machines stop when idle; 2 x 500 GB x $0.0001 stand.
    CostCase(title="AWS, machines that stop", stack=AWS, run=624.0, standing=0.1, prices=AWS_PRICES),
    # And 2 x $13 + $500 for a NAT gateway.
    CostCase(
        title="AWS, machines that never stop, and a NAT gateway",
        stack=AWS,
        run=624.0,
        standing=526.1,
        change=lambda config: config["trainyard:jobs"]["resnet"]["cluster"].update(stopWhenIdle=0),
        prices={**AWS_PRICES, "NAT gateway": 500.0},
        resources=NAT,
    ),
    CostCase(
        title="AWS, a NAT gateway without a price",
        stack=AWS,
        run=624.0,
        standing=None,
        prices=AWS_PRICES,
        resources=NAT,
    ),
    # 4 h x (3 x $3.00 + 1 x $0.20) = 4 x 9.2.
    CostCase(
        title="OpenPAI, two SKUs",
        stack=PAI,
        run=36.8,
        change=two_roles(),
        prices={"gpu2": 3.0, "cpu1": 0.2, "openpai": 1.0},
    ),
    # cpu1 has no price of its own: 4 h x (3 x $3.00 + 1 x $1.00).
    CostCase(
        title="OpenPAI, a SKU without a price of its own",
        stack=PAI,
        run=40.0,
        change=two_roles(),
        prices={"gpu2": 3.0, "openpai": 1.0},
    ),
    # Each of 3 starts may take 4 hours: 3 x 36.80.
    CostCase(
        title="OpenPAI, with retries",
        stack=PAI,
        run=110.4,
        change=two_roles(count=2),
        prices={"gpu2": 3.0, "cpu1": 0.2},
    ),
    CostCase(
        title="OpenPAI, with retries without limit",
        stack=PAI,
        run=None,
        change=two_roles(count=-1),
        prices={"gpu2": 3.0, "cpu1": 0.2},
    ),
)


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stacks")
    shutil.copytree(STACKS / "examples", folder / "examples")
    return folder


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_run_costs_what_a_person_computes(case: CostCase, stacks: Path) -> None:
    document = yaml.safe_load((STACKS / f"Pulumi.{case.stack}.yaml").read_text("utf-8"))
    case.change(document["config"])
    file = stacks / f"Pulumi.{case.stack}.yaml"
    file.write_text(yaml.safe_dump(document), "utf-8")
    judged = judge_file(file)
    assert not judged.errors, judged.errors
    plan = plan_of(judged)
    resources = tuple(ReviewedResource(token, "made", token, "", inputs) for token, inputs in case.resources)
    side = Snapshot(plan.stack, plan.platform, to_plain_values(plan), resources)
    costs = stack_costs(side, require_capability(plan.platform, ReviewPlatform), case.prices, ())
    (job, *_) = costs.jobs
    assert (job.usd_per_run, costs.usd_per_hour) == (
        None if case.run is None else pytest.approx(case.run),
        None if case.standing is None else pytest.approx(case.standing),
    )
