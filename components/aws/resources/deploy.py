# SPDX-License-Identifier: Apache-2.0
"""Makes a plan's AWS resources, in the order of their dependencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws

from components.aws.machines import MachinePlace, read_recorded
from components.aws.plan import TAKEN, AwsDl1Plan
from components.aws.replacements import (
    PLACE,
    REPLACED_WITH,
    Replacing,
    find_replacements,
    find_unplaced,
    keep_placement,
)
from components.aws.resources.access import Access, AccessArgs
from components.aws.resources.cluster import ClusterArgs, Job, launch_template_name
from components.aws.resources.context import Context, make_aws_lazy
from components.aws.resources.existing import Answers, find_aws_departures, look_up_existing
from components.aws.resources.leftovers import find_leftovers
from components.aws.resources.network import Network, NetworkArgs
from components.aws.resources.storage import Storage, StorageArgs
from components.aws.run_inputs import build_archive
from components.aws.statements import vpc_endpoint_policies
from components.messages import warn_user
from components.outputs import Borrowed, last_outputs
from components.plan.platform import Deployment
from components.runs import RunProvider, artifacts_folder, code_artifact
from schemas.findings import dotted_path
from schemas.job_code import CodeArtifact


@dataclass(frozen=True)
class Placed:
    """The network and the role of the nodes, made by this stack or by another."""

    network: Network | None
    subnet: pulumi.Input[str]
    group: pulumi.Input[str]
    role: pulumi.Input[str]
    profile: pulumi.Input[str]


def stack_outputs(here: Context, placed: Placed, jobs: Mapping[str, Job]) -> dict[str, Any]:
    plan = here.plan
    console = f"https://{plan.region}.console.aws.amazon.com"
    concerns = ("network", "access", "bucket", "registry", *(["logs"] if plan.logs.enabled else []))
    exported: dict[str, Any] = {
        "account": here.account,
        "region": plan.region,
        # The resources that the stack itself made. The others stay when the stack is destroyed.
        "made": [concern for concern in concerns if getattr(plan, concern).create],
        REPLACED_WITH: list(PLACE),
        "bucket": here.bucket,
        "bucketUri": here.bucket_uri,
        "imagePushAddress": here.registry,
        "dockerLogin": here.registry.apply(
            lambda address: (
                f"aws ecr get-login-password --region {plan.region} | "
                f"docker login --username AWS --password-stdin {address.partition('/')[0]}"
            )
        ),
        "subnetId": placed.subnet,
        "securityGroupId": placed.group,
        "logGroup": here.log_group,
        "nodesRole": placed.role,
        "instanceProfile": placed.profile,
        "jobs": {name: _job_outputs(here, job) for name, job in jobs.items()},
        "console": {
            "bucket": here.bucket.apply(lambda name: f"{console}/s3/buckets/{name}"),
            "instances": f"{console}/ec2/home?region={plan.region}#Instances:tag:stack={plan.stack}",
        },
    }
    if placed.network is not None:
        exported |= {"vpcId": placed.network.vpc_id, "subnetCidr": plan.network.subnet_cidr}
    return {name: value for name, value in exported.items() if value is not None}


def _job_outputs(here: Context, job: Job) -> dict[str, Any]:
    instances = job.cluster.instances
    shell = f"aws ssm start-session --region {here.plan.region} --target {{}}".format
    shown: dict[str, Any] = {
        "instances": {node: instance.id for node, instance in instances.items()},
        # Another name makes the next `up` replace the machines, after a warning.
        "launchTemplate": job.cluster.template_name,
        # A shell on a node needs no open port.
        "shells": {node: instance.id.apply(shell) for node, instance in instances.items()},
        "runs": {key: {"state": run.state, "nodes": run.node_runs} for key, run in job.runs.items()},
    }
    return {**shown, "address": job.cluster.address} if job.cluster.address is not None else shown


LAUNCHER = Path(__file__).resolve().parents[3] / "launcher"


def deploy_aws_dl1(plan: AwsDl1Plan, folder: Path) -> dict[str, Any]:
    """Makes every resource of the plan and returns the stack's outputs. Paths in the plan start at `folder`."""
    make_aws_lazy()
    before, recorded = last_outputs(), read_recorded()
    provider = _run_provider(plan) if plan.jobs else None
    answers = look_up_existing(plan, recorded, provider)
    templates = {
        name: launch_template_name(job.cluster, plan.region, answers.images[name]) for name, job in plan.jobs.items()
    }
    borrowed = Borrowed(plan, TAKEN)
    replacing = Replacing(plan, answers.zone, answers.images, templates, borrowed)
    losses = [*find_aws_departures(plan, before), *find_replacements(replacing, recorded, before)]
    losses += find_unplaced(plan, templates, recorded)
    for wrong in [*losses, *find_leftovers(plan, templates, answers.account, recorded)]:
        warn_user(f"{dotted_path(wrong.path)}: {wrong.message}\n  {wrong.remedy}")
    plan = keep_placement(plan, templates, recorded)
    prefix = f"{plan.team}-{plan.environment}"
    here = Context(plan, answers.account, borrowed)
    access = Access("access", AccessArgs(plan, prefix, plan.tags)) if plan.access.create else None
    folders = [job.cluster.key for job in plan.jobs.values()]
    storage = Storage("storage", StorageArgs(plan.bucket, plan.registry, plan.logs, plan.tags, folders))
    network: Network | None = None
    if plan.network.create:
        policies = vpc_endpoint_policies(replace(plan, account=answers.account))
        args = NetworkArgs(plan.network, plan.region, answers.zone, prefix, plan.tags, policies)
        network = Network("network", args)
    role = plan.access.runs_role
    placed = Placed(
        network,
        network.subnet_id if network else borrowed.get("network", "subnetId") or plan.network.subnet or "",
        network.group_id if network else borrowed.get("network", "securityGroupId") or plan.network.security_group,
        access.role if access else borrowed.get("access", "nodesRole") or role,
        access.profile if access else borrowed.get("access", "instanceProfile") or role,
    )
    after = [one for one in (storage, access, network) if one is not None]
    jobs = _make_jobs(here, answers, placed, folder, storage, after, provider) if provider else {}
    return stack_outputs(here, placed, jobs)


def _run_provider(plan: AwsDl1Plan) -> RunProvider:
    profile = pulumi.Config("aws").get("profile")
    return RunProvider("runs", {"region": plan.region, **({"profile": profile} if profile else {})})


def _make_jobs(
    here: Context, answers: Answers, placed: Placed, folder: Path, storage: Storage, after: Sequence[pulumi.Resource],
    provider: RunProvider,
) -> dict[str, Job]:  # fmt: skip
    """`after`: resources that must exist before a machine starts. Objects need the bucket only."""
    plan = here.plan
    launcher = build_archive(LAUNCHER, artifacts_folder() / plan.stack, "launcher", "launcher")
    launcher_key = f".trainyard/launcher/{launcher.file_name.removeprefix('launcher-')}"
    after = [*after, _archive_object("launcher", here, launcher_key, launcher, storage)]
    place = MachinePlace(placed.subnet, placed.group, placed.profile)
    jobs = {}
    for name, job in plan.jobs.items():
        code = code_artifact(plan, job, folder, build_archive)
        key = f".trainyard/code/{code.file_name}" if code else None
        needs = [*after, _archive_object(f"code/{job.called}", here, key, code, storage)] if code and key else after
        args = ClusterArgs(job, here, place, answers.images[name], launcher_key, key, provider, needs)
        jobs[name] = Job(name, args)
    return jobs


def _archive_object(name: str, here: Context, key: str, archive: CodeArtifact, storage: Storage) -> pulumi.Resource:
    """An object whose key has its digest. The previous one is kept, because machines and queued runs may still need
    it."""
    content = {"source": pulumi.FileAsset(str(archive.path)), "content_type": "application/gzip"}
    kept = pulumi.ResourceOptions(depends_on=[storage], retain_on_delete=True)
    tags = dict(here.plan.tags)
    return aws.s3.BucketObjectv2(name, bucket=here.bucket, key=key, tags=tags, opts=kept, **content)


DEPLOYMENT = Deployment(deploy_aws_dl1)
