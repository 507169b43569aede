# SPDX-License-Identifier: Apache-2.0
"""AWS DL1 for stacks on the local cloud: its only account, stand-ins for existing resources that a file names, and what
is lost when a stack is removed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

from catalog.aws import CAPACITY_BLOCK
from catalog.tables import table
from components.aws.client.aws_session import local_aws_regions
from components.aws.local.removal import AwsRemoval, has_objects
from components.aws.local.stand_ins import RECORD, StandIns, widen_vpc
from components.aws.plan import AwsDl1Plan, aws_dl1_plan
from components.aws.statements import aws_policies
from components.plan.model import Plan
from components.platform.calls import LocalCloud, Tell
from components.platform.local import LocalFile, LocalStackError
from localcloud.aws.account import ACCOUNT
from localcloud.environments.apt import install_command
from schemas.name_suggestions import count_noun

# Provider settings with credentials of a real account. For the local one, the environment has them.
_PROVIDER, _REGION = "aws:", "aws:region"


class AwsLocalPlatform(AwsRemoval):
    job_type = "trainyard:aws-dl1:Job"
    client = "the AWS CLI"
    shown_outputs: tuple[tuple[str, str], ...] = (
        ("bucketUri", "bucket"), ("imagePushAddress", "images"), ("subnetId", "subnet"),
    )  # fmt: skip

    def lost_with_job(self, runs: int) -> str:
        return f"its machines are terminated, and what {count_noun(runs, 'run')} left stays in the bucket"

    def stand_in(self, made: LocalFile, plan: Plan, cloud: LocalCloud, tell: Tell) -> None:
        if plan.jobs and not shutil.which("ssh-keygen"):
            raise LocalStackError(
                "machines of the local AWS need ssh-keygen, which this machine lacks\n"
                f"As root: {install_command(['openssh-client'])}"
            )
        stand_in_for_aws(made, aws_dl1_plan(plan), cloud, tell)

    def remove_stand_ins(self, cloud: LocalCloud, tell: Tell, with_data: bool) -> None:
        if (cloud.home / RECORD).exists():
            StandIns(cloud, tell, local_aws_regions()[0]).remove(
                lambda kind, name: kind == "bucket" and not with_data and has_objects(cloud, name, tell)
            )


def stand_in_for_aws(made: LocalFile, plan: AwsDl1Plan, cloud: LocalCloud, tell: Tell) -> None:
    """Makes stand-ins for existing resources, and changes the file so that it names them."""
    own = made.config.get(_REGION)
    rest = {key: value for key, value in made.config.items() if not key.startswith(_PROVIDER)}
    made.config = {_REGION: own, **rest}
    if plan.account and plan.account != ACCOUNT:
        made.config["trainyard:account"] = ACCOUNT
        made.remarks.append(f"account {plan.account}: the local cloud has one account, {ACCOUNT}")
    zones = table("aws_local")["zones"].get(plan.region)
    zone = plan.network.zone or (zones[0] if zones else "")
    stand_ins = StandIns(cloud, tell, plan.region, zone)
    _stand_in_network(made, stand_ins)
    access = plan.access
    named = [
        ("bucket", "" if plan.bucket.create or "bucket" in plan.taken else plan.bucket.name),
        ("repository", "" if plan.registry.create or "registry" in plan.taken else plan.registry.repository),
        ("role", "" if access.make_runs_role or "access" in plan.taken else access.runs_role),
        ("group", access.users_group or ""),
        ("user role", access.users_role or ""),
        *(("bucket", item.bucket) for job in plan.jobs.values() for item in job.inputs),
    ]
    if plan.logs.enabled and not plan.logs.create and "logs" not in plan.taken:
        named.append(("log group", plan.logs.group_name))
    for kind, name in dict.fromkeys(named):
        if name and not (kind == "bucket" and plan.bucket.create and name == plan.bucket.name):
            _stand_in(made, stand_ins, kind, name, f"{kind} {name}: an empty one stands in")
    if boundary := access.permissions_boundary:
        remark = f"the boundary {boundary}: one that allows everything stands in"
        there = _stand_in(made, stand_ins, "policy", boundary, remark)
        made.config["trainyard:access"]["permissionsBoundary"] = there
    _grant_to_stand_ins(made, plan, stand_ins)
    _stand_in_machines(made, plan, stand_ins)


def _stand_in(made: LocalFile, stand_ins: StandIns, kind: str, name: str, remark: str, **within: str) -> str:
    """The id or name in the local AWS. The file's remarks say if it is a stand-in's."""
    there, stands_in = stand_ins.one(kind, name, **within)
    made.remarks += [remark] if stands_in else []
    return there


def _stand_in_machines(made: LocalFile, plan: AwsDl1Plan, stand_ins: StandIns) -> None:
    """What the machines of jobs start from and in."""
    for name, job in plan.jobs.items():
        cluster = made.config["trainyard:jobs"][name].get("cluster") or {}
        if job.cluster.image:
            cluster["ami"], stands_in = stand_ins.one("image", job.cluster.image)
            if stands_in:
                made.remarks.append(f"job {name}: {cluster['ami']} stands in for the image {job.cluster.image}")
        if parameter := job.cluster.image_parameter:
            _stand_in(made, stand_ins, "parameter", parameter, f"job {name}: the parameter {parameter} is a stand-in")
        if job.cluster.market == CAPACITY_BLOCK and (block := job.cluster.reservation):
            remark, machine = f"job {name}: a capacity block of the local cloud stands in for {block}", job.shape.name
            cluster["reservation"] = _stand_in(made, stand_ins, "capacity block", block, remark, machine=machine)
        elif cluster.pop("reservation", None):
            made.remarks.append(f"job {name}: the local cloud has room enough; its reservation is left out")
        if group := cluster.get("placementGroup"):
            stand_ins.one("placement group", str(group))


def _stand_in_network(made: LocalFile, stand_ins: StandIns) -> None:
    """Makes the VPC first, then the resources in it. If the file names a subnet or group without its VPC, a VPC is
    made, too."""
    network: dict[str, Any] = made.config.get("trainyard:network") or {}
    keys = {"subnet": "subnet", "securityGroup": "security group", "routeTable": "route table"}
    inside = [key for key in keys if network.get(key)]
    if not inside and not network.get("vpc"):
        return
    within = {"holds": str(network["subnetCidr"])} if network.get("vpc") and network.get("subnetCidr") else {}
    vpc, stands_in = stand_ins.one("vpc", str(network.get("vpc") or "of the named subnet"), **within)
    stood = ["vpc"] if stands_in and network.get("vpc") else []
    if stands_in and within:
        widen_vpc(stand_ins, vpc, within["holds"])
    if network.get("vpc"):
        network["vpc"] = vpc
    for key in inside:
        network[key], stands_in = stand_ins.one(keys[key], str(network[key]), vpc=vpc)
        stood += [keys[key]] if stands_in else []
    if stood:
        made.remarks.append(f"{', '.join(stood)}: the file names existing ones; empty ones stand in")


def least_access(plan: AwsDl1Plan) -> AwsDl1Plan:
    """The plan of a stack with existing access, changed so that it makes the least-privilege access."""
    return replace(plan, access=replace(plan.access, create=True, mode="least-privilege"))


def _grant_to_stand_ins(made: LocalFile, plan: AwsDl1Plan, stand_ins: StandIns) -> None:
    """Grants the access that a stack with existing access needs. `trainyard access` prints the same grants."""
    access = plan.access
    if access.create or "access" in plan.taken:
        return
    given = []
    for policy in aws_policies(least_access(plan)):
        users = (("group", access.users_group), ("user role", access.users_role))
        for kind, name in (("role", access.runs_role),) if policy.who == "runs" else users:
            if name and policy.document:
                given.append(stand_ins.grant(kind, name, policy.name, policy.document))
    if any(given):
        made.remarks.append("policies exist elsewhere: here the stack gets the least access that it needs")
    made.has_access = all(given)


LOCAL = AwsLocalPlatform()
