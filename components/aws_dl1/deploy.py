# SPDX-License-Identifier: Apache-2.0
"""Makes a plan's AWS resources, in the order of their dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws

from components.archives import CodeArtifact
from components.artifacts import artifacts_folder, code_artifact
from components.aws_dl1.access import Access, AccessArgs
from components.aws_dl1.archives import build_archive
from components.aws_dl1.cluster import ClusterArgs, launch_template_name
from components.aws_dl1.context import Context
from components.aws_dl1.departures import find_departures
from components.aws_dl1.existing import Answers, resolve
from components.aws_dl1.job import Job
from components.aws_dl1.lean import make_lean
from components.aws_dl1.leftovers import find_leftovers
from components.aws_dl1.machines import MachinePlace
from components.aws_dl1.network import Network, NetworkArgs
from components.aws_dl1.outputs import Placed, outputs
from components.aws_dl1.placement import find_unplaced, keep_placement
from components.aws_dl1.plan import AwsDl1Plan
from components.aws_dl1.recorded import read_recorded
from components.aws_dl1.replacements import Replacing, find_replacements
from components.aws_dl1.statements import endpoint_policies
from components.aws_dl1.storage import Storage, StorageArgs
from components.aws_dl1.uses import TAKEN
from components.borrowing import Borrowed
from components.outputs import last_outputs
from components.run import RunProvider
from components.voice import warn
from schemas.findings import dotted

LAUNCHER = Path(__file__).resolve().parents[2] / "launcher"


def deploy(plan: AwsDl1Plan, folder: Path) -> dict[str, Any]:
    """Makes every resource of the plan and returns the stack's outputs. Paths in the plan start at `folder`."""
    make_lean()
    before, recorded = last_outputs(), read_recorded()
    answers = resolve(plan, recorded)
    templates = {
        name: launch_template_name(job.cluster, plan.region, answers.images[name]) for name, job in plan.jobs.items()
    }
    borrowed = Borrowed(plan, TAKEN)
    replacing = Replacing(plan, answers.zone, answers.images, templates, borrowed)
    losses = [*find_departures(plan, before), *find_replacements(replacing, recorded, before)]
    losses += find_unplaced(plan, templates, recorded)
    for wrong in [*losses, *find_leftovers(plan, templates, answers.account, recorded)]:
        warn(f"{dotted(wrong.path)}: {wrong.message}\n  {wrong.remedy}")
    plan = keep_placement(plan, templates, recorded)
    prefix = f"{plan.team}-{plan.environment}"
    here = Context(plan, answers.account, borrowed)
    access = Access("access", AccessArgs(plan, prefix, plan.tags)) if plan.access.create else None
    folders = [job.cluster.key for job in plan.jobs.values()]
    storage = Storage("storage", StorageArgs(plan.bucket, plan.registry, plan.logs, plan.tags, folders))
    network = _network(plan, answers, prefix)
    placed = _placed(plan, borrowed, network, access)
    after = [one for one in (storage, access, network) if one is not None]
    return outputs(here, placed, _jobs(here, answers, placed, folder, storage, after))


def _network(plan: AwsDl1Plan, answers: Answers, prefix: str) -> Network | None:
    if not plan.network.create:
        return None
    policies = endpoint_policies(replace(plan, account=answers.account))
    return Network("network", NetworkArgs(plan.network, plan.region, answers.zone, prefix, plan.tags, policies))


def _placed(plan: AwsDl1Plan, borrowed: Borrowed, network: Network | None, access: Access | None) -> Placed:
    role = plan.access.runs_role
    return Placed(
        network,
        network.subnet_id if network else borrowed.get("network", "subnetId") or plan.network.subnet or "",
        network.group_id if network else borrowed.get("network", "securityGroupId") or plan.network.security_group,
        access.role if access else borrowed.get("access", "nodesRole") or role,
        access.profile if access else borrowed.get("access", "instanceProfile") or role,
    )


def _jobs(
    here: Context,
    answers: Answers,
    placed: Placed,
    folder: Path,
    storage: Storage,
    after: Sequence[pulumi.Resource],
) -> dict[str, Job]:
    """`after`: what has to be there before a machine starts. Objects need the bucket only."""
    plan = here.plan
    if not plan.jobs:
        return {}
    profile = pulumi.Config("aws").get("profile")
    provider = RunProvider("runs", {"region": plan.region, **({"profile": profile} if profile else {})})
    launcher = build_archive(LAUNCHER, artifacts_folder() / plan.stack, "launcher", "launcher")
    launcher_key = f".trainyard/launcher/{launcher.file_name.removeprefix('launcher-')}"
    after = [*after, _object("launcher", here, launcher_key, launcher, storage)]
    place = MachinePlace(placed.subnet, placed.group, placed.profile)
    jobs = {}
    for name, job in plan.jobs.items():
        code = code_artifact(plan, job, folder, build_archive)
        key = f".trainyard/code/{code.file_name}" if code else None
        needs = [*after, _object(f"code/{job.called}", here, key, code, storage)] if code and key else after
        args = ClusterArgs(job, here, place, answers.images[name], launcher_key, key, provider, needs)
        jobs[name] = Job(name, args)
    return jobs


def _object(name: str, here: Context, key: str, archive: CodeArtifact, storage: Storage) -> pulumi.Resource:
    """Its key has its digest. The one before stays: machines and queued runs may still need it."""
    return aws.s3.BucketObjectv2(
        name,
        bucket=here.bucket,
        key=key,
        source=pulumi.FileAsset(str(archive.path)),
        content_type="application/gzip",
        tags=dict(here.plan.tags),
        opts=pulumi.ResourceOptions(depends_on=[storage], retain_on_delete=True),
    )
