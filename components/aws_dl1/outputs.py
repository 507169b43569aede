# SPDX-License-Identifier: Apache-2.0
"""The outputs of a stack: everything that people or other stacks need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.aws_dl1.context import Context
from components.aws_dl1.job import Job
from components.aws_dl1.network import Network
from components.aws_dl1.plan import AwsDl1Plan
from components.aws_dl1.replacements import PLACE, REPLACED_WITH


@dataclass(frozen=True)
class Placed:
    """Where nodes are and as whom they act, made here or elsewhere."""

    network: Network | None
    subnet: pulumi.Input[str]
    group: pulumi.Input[str]
    role: pulumi.Input[str]
    profile: pulumi.Input[str]


def outputs(here: Context, placed: Placed, jobs: Mapping[str, Job]) -> dict[str, Any]:
    plan = here.plan
    console = f"https://{plan.region}.console.aws.amazon.com"
    exported: dict[str, Any] = {
        "account": here.account,
        "region": plan.region,
        # What of it the stack made itself. What it only uses stays when it goes.
        "made": [concern for concern, makes in _makes(plan).items() if makes],
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
        "jobs": {name: _job(here, job) for name, job in jobs.items()},
        "console": {
            "bucket": here.bucket.apply(lambda name: f"{console}/s3/buckets/{name}"),
            "instances": f"{console}/ec2/home?region={plan.region}#Instances:tag:stack={plan.stack}",
        },
    }
    if placed.network is not None:
        exported |= {"vpcId": placed.network.vpc_id, "subnetCidr": plan.network.subnet_cidr}
    return {name: value for name, value in exported.items() if value is not None}


def _makes(plan: AwsDl1Plan) -> dict[str, bool]:
    return {
        "network": plan.network.create,
        "access": plan.access.create,
        "bucket": plan.bucket.create,
        "registry": plan.registry.create,
        "logs": plan.logs.enabled and plan.logs.create,
    }


def _job(here: Context, job: Job) -> dict[str, Any]:
    instances = job.cluster.instances
    shell = f"aws ssm start-session --region {here.plan.region} --target {{}}".format
    shown: dict[str, Any] = {
        "instances": {node: instance.id for node, instance in instances.items()},
        # With another one the next `up` replaces the machines, and says so before.
        "launchTemplate": job.cluster.template_name,
        # A shell on a node takes no open port.
        "shells": {node: instance.id.apply(shell) for node, instance in instances.items()},
        "runs": {key: {"state": run.state, "nodes": run.node_runs} for key, run in job.runs.items()},
    }
    return {**shown, "address": job.cluster.address} if job.cluster.address is not None else shown
