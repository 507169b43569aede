# SPDX-License-Identifier: Apache-2.0
"""Looks up what only AWS knows, before anything is made: the account, zones, images, and existing resources."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from catalog.aws import aws_machine
from catalog.tables import table
from components.aws.machines import MachineImage, Recorded
from components.aws.plan import AwsDl1Plan, AwsJobPlan, ClusterPlan
from components.aws.resources import capacity_blocks
from components.aws.resources.cluster import launch_template_name
from components.aws.resources.context import look_up_in_aws
from components.aws.types.security_rules import read_security_rules
from components.messages import RefusedError, warn_user
from components.outputs import PROTECTED, Outputs, last_outputs
from components.runs import RunProvider
from schemas.each import lies_outside
from schemas.findings import Path, Wrong, at, dotted_path
from schemas.name_suggestions import quoted_list

_MAY_BE_UNSEEN = "correct it, or allow the deployer to read it: `trainyard access` prints what the deployer needs"
# AWS's own message, without the text that engine and provider add.
_API_ERROR = re.compile(r"api error (?P<text>[^\n]*)")
_RETURNED = "returned an error:"
# By concern: what is lost where the name of a resource with data changes, its fate if it is not kept, and the remedy.
_DEPARTURES = {
    "bucket": (
        "nothing moves the objects of the bucket `{}`. ",
        "Pulumi deletes it with everything in it, unless it was kept until now",
        "to keep it, write `bucket: {{ name: {} }}`; else copy what you need first",
    ),
    "registry": (
        "nothing moves the images of the repository `{}`. ",
        "AWS deletes them with it, unless it was kept until now",
        "to keep it, write `registry: {{ repository: {} }}`; else push the images of the jobs again",
    ),
    "logs": (
        "the log group `{}` is deleted, with everything that runs printed",
        "",
        "first copy what you need (`trainyard runs logs`)",
    ),
}


@dataclass(frozen=True)
class Answers:
    """`zone`: where the nodes' subnet is made. `images`: of each job. `profile`: of nodes whose role exists."""

    account: str
    zone: str
    images: Mapping[str, MachineImage]


def look_up_existing(plan: AwsDl1Plan, recorded: Recorded, provider: RunProvider | None) -> Answers:
    """Looks up everything. Raises RefusedError, which lists all problems. `provider`: None if there are no jobs."""
    search = _Search()
    account = search.account(plan)
    zones = search.zones(plan)
    block_zones = search.block_zones(plan, provider, zones) if provider else {}
    named = plan.network.zone
    if named and zones and named not in zones:
        message = f"the zone {named} does not offer {_machine_types(plan)}"
        search.add(at("network", "zone"), message, f"use {quoted_list(zones)}, or remove it")
    # A change of what AWS offers must not move the machines of an existing subnet.
    there = recorded.one("Subnet", "subnet").get("availabilityZone")
    zone = str(named or next(iter(block_zones.values()), None) or there or (zones[0] if zones else ""))
    images = {name: search.image(job, plan.region, recorded) for name, job in plan.jobs.items()}
    if not plan.network.create and plan.network.subnet:
        _check_existing_network(search, plan, plan.network.subnet, tuple(block_zones.values()) or zones)
    elif plan.network.vpc:
        vpc = search.look(at("network", "vpc"), f"the VPC {plan.network.vpc}", "ec2", "getVpc", id=plan.network.vpc)
        blocks = [str(one["cidrBlock"]) for one in vpc.get("cidrBlockAssociations") or ()]
        if lies_outside(plan.network.subnet_cidr, blocks):
            message = f"{plan.network.subnet_cidr} lies outside of the VPC's addresses: {', '.join(blocks)}"
            search.add(at("network", "subnetCidr"), message, "choose a free part of them")
    bucket, registry, access = plan.bucket, plan.registry, plan.access
    if not bucket.create and "bucket" not in plan.taken:
        search.look(at("bucket", "existing"), f"the bucket `{bucket.name}`", "s3", "getBucket", bucket=bucket.name)
    if not registry.create and "registry" not in plan.taken:
        named = registry.repository
        search.look(at("registry", "existing"), f"the repository `{named}`", "ecr", "getRepository", name=named)
    if not access.create and "access" not in plan.taken:
        # The console makes a profile of the same name with each role for EC2.
        words = f"the instance profile `{access.runs_role}`"
        search.look(at("access", "runs"), words, "iam", "getInstanceProfile", name=access.runs_role)
    if search.wrongs:
        raise RefusedError(search.wrongs)
    return Answers(account, zone, {name: image for name, image in images.items() if image})


def _check_existing_network(search: _Search, plan: AwsDl1Plan, subnet: str, zones: tuple[str, ...]) -> None:
    place, group = at("network", "subnet"), plan.network.security_group
    found = search.look(place, f"the subnet {subnet}", "ec2", "getSubnet", id=subnet)
    zone = found.get("availabilityZone")
    if zones and zone and zone not in zones:
        message = f"the subnet lies in {zone}, which does not offer {_machine_types(plan)}"
        search.add(place, message, f"use one in {quoted_list(zones)}")
    place = at("network", "securityGroup")
    owner = search.look(place, f"the security group {group}", "ec2", "getSecurityGroup", id=group)
    if found.get("vpcId") and owner.get("vpcId") and found["vpcId"] != owner["vpcId"]:
        message = f"the security group {group} is of {owner['vpcId']}, but the subnet is of {found['vpcId']}"
        search.add(place, message, "name a group of the subnet's own VPC")
    elif owner:
        # EFA needs all traffic from and to the group itself.
        try:
            filters = [{"name": "group-id", "values": [group]}]
            ids = look_up_in_aws("vpc", "getSecurityGroupRules", filters=filters)["ids"]
            rows = [look_up_in_aws("vpc", "getSecurityGroupRule", securityGroupRuleId=one) for one in ids]
        except Exception:  # Pulumi raises nothing more precise for what a provider answers
            return
        for egress, words in ((False, "from"), (True, "to")):
            own = [row for row in rows if bool(row.get("isEgress")) is egress]
            within = [rule for row in own for rule in read_security_rules(row, "egress" if egress else "ingress")]
            if not any(rule.protocol is None and rule.peer == group for rule in within):
                message = f"the security group {group} has no rule that lets everything {words} the group itself"
                search.add(place, message, "add it: EFA's traffic has no ports, and 0.0.0.0/0 does not cover it")


def _machine_types(plan: AwsDl1Plan) -> str:
    return quoted_list(sorted({job.shape.name for job in plan.jobs.values()})) or "any machine that trainyard knows"


class _Search:
    """Makes lookups one by one, and collects the problems."""

    def __init__(self) -> None:
        self.wrongs: list[Wrong] = []

    def add(self, path: Path, message: str, remedy: str) -> None:
        self.wrongs.append(Wrong(path, message, remedy))

    def look(self, path: Path, words: str, package: str, function: str, **arguments: Any) -> Mapping[str, Any]:
        """The result of a function of the provider. Empty if AWS refuses it; the error is collected."""
        return self._ask(path, words, lambda: look_up_in_aws(package, function, **arguments))

    def _ask(self, path: Path, words: str, call: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        try:
            return call()
        except Exception as problem:  # Pulumi raises nothing more precise for what a provider answers
            text = str(problem).strip()
            refusal = _API_ERROR.search(text)
            first_line = next(iter(text.rpartition(_RETURNED)[2].strip().splitlines()), text)
            self.add(path, f"{words}: {refusal['text'].strip() if refusal else first_line}", _MAY_BE_UNSEEN)
            return {}

    def account(self, plan: AwsDl1Plan) -> str:
        known = self.look(at("account"), "the account", "index", "getCallerIdentity")
        account = str(known.get("accountId") or plan.account or "")
        if plan.account and account != plan.account:
            message = f"the credentials are of the account {account}, but the stack is for {plan.account}"
            self.add(at("account"), message, "use the credentials of that account (AWS_PROFILE), or correct it")
        return account

    def zones(self, plan: AwsDl1Plan) -> tuple[str, ...]:
        """The names of zones that offer the machines of all jobs. Empty if the lookup fails."""
        kinds = sorted({job.shape.name for job in plan.jobs.values()})
        if not kinds:
            # Machines of other stacks, whose types are not known here: any zone that offers some.
            return tuple(sorted(set(self._zones_of(*table("aws_machines")["machines"]))))
        having = [set(self._zones_of(kind)) for kind in kinds]
        common = tuple(sorted(set.intersection(*having)))
        if not common and not self.wrongs:
            self._nowhere(plan, kinds)
        return common

    def block_zones(self, plan: AwsDl1Plan, provider: RunProvider, offering: tuple[str, ...]) -> dict[str, str]:
        """The zones of the capacity blocks, by job. What is wrong with them is collected, or only said."""
        now, zones = datetime.now(UTC), dict[str, str]()
        jobs = capacity_blocks.block_jobs(plan)
        nodes = Counter[str]()
        for job in jobs.values():
            nodes[str(job.cluster.reservation)] += len(job.cluster.nodes)
        for name, job in jobs.items():
            named = str(job.cluster.reservation)
            ask = partial(capacity_blocks.look_up_block, provider, named)
            if block := self._ask(capacity_blocks.block_path(name), f"the capacity block {named}", ask):
                zones[name] = str(block["availabilityZone"])
                self.wrongs += capacity_blocks.find_block_problems(name, job, block, nodes[named], now)
                for wrong in capacity_blocks.find_long_runs(name, job, block, now):
                    warn_user(f"{dotted_path(wrong.path)}: {wrong.message}\n  {wrong.remedy}")
        self.wrongs += capacity_blocks.find_scattered_blocks(zones, plan, offering)
        return zones

    def _nowhere(self, plan: AwsDl1Plan, kinds: Sequence[str]) -> None:
        """No zone offers the machines. Only a warning if the stack already has a subnet: existing machines stay."""
        since = {row.not_offered_since for kind in kinds if (row := aws_machine(kind)) and row.not_offered_since}
        seen = f"; since {' and '.join(sorted(since))} no region is known to offer it" if since else ""
        wrong = Wrong(
            ("config", "aws:region"),
            f"no zone of {plan.region} offers {quoted_list(kinds)} to this account{seen}",
            "use another region, or ask AWS's support whether your account gets such machines",
        )
        if last_outputs().get("jobs") and (plan.network.zone or not plan.network.create):
            warn_user(f"{dotted_path(wrong.path)}: {wrong.message}\n  existing machines stay; AWS may refuse new ones")
        else:
            self.wrongs.append(wrong)

    def _zones_of(self, *kinds: str) -> Iterable[str]:
        filters = [{"name": "instance-type", "values": [*kinds]}]
        arguments = {"filters": filters, "locationType": "availability-zone"}
        place, words = ("config", "aws:region"), f"the zones of {quoted_list(kinds[:1])}"
        return self.look(place, words, "ec2", "getInstanceTypeOfferings", **arguments).get("locations", ())

    def image(self, job: AwsJobPlan, region: str, recorded: Recorded) -> MachineImage | None:
        """The image of a job's machines. What a parameter says counts when they are made: they keep their image."""
        cluster = job.cluster
        place = at("jobs", job.name, "cluster", "ami" if cluster.image else "amiParameter")
        image = cluster.image
        if image is None:
            named_by = f"parameter {cluster.image_parameter}"
            kept = _kept_image(job, region, named_by, recorded)
            words = f"the parameter `{cluster.image_parameter}`"
            look = partial(look_up_in_aws, "ssm", "getParameter", name=cluster.image_parameter)
            if kept:
                _say_newer_image(job, kept, look)
                return kept
            image = self._ask(place, words, look).get("value")
        if not image:
            return None
        filters = [{"name": "image-id", "values": [image]}]
        known = self.look(place, f"the image {image}", "ec2", "getAmi", filters=filters, mostRecent=True)
        return self._fitting(place, job.name, cluster, image, known) if known else None

    def _fitting(
        self, place: Path, job: str, cluster: ClusterPlan, image: str, known: Mapping[str, Any]
    ) -> MachineImage:
        device = str(known.get("rootDeviceName") or "/dev/sda1")
        disks = [one for one in known.get("blockDeviceMappings") or () if one.get("deviceName") == device]
        needs = max((int((one.get("ebs") or {}).get("volume_size") or 0) for one in disks), default=0)
        if needs > cluster.disk_gb:
            message = f"the image {image} needs a disk of {needs} GB, but the nodes get {cluster.disk_gb}"
            self.add(at("jobs", job, "blockStorageGb"), message, f"use {needs} or more")
        return MachineImage(image, device, cluster.image or f"parameter {cluster.image_parameter}")


def _kept_image(job: AwsJobPlan, region: str, named_by: str, recorded: Recorded) -> MachineImage | None:
    """The image of the machines that are there, if the same parameter named it."""
    template = recorded.one("LaunchTemplate", job.name, *job.was)
    wanted = launch_template_name(job.cluster, region, MachineImage("", "", named_by))
    (disk, *_) = template.get("blockDeviceMappings") or [{}]
    if template.get("name") != wanted or not template.get("imageId") or not disk.get("deviceName"):
        return None
    return MachineImage(str(template["imageId"]), str(disk["deviceName"]), named_by)


def _say_newer_image(job: AwsJobPlan, kept: MachineImage, look: Callable[[], Mapping[str, Any]]) -> None:
    try:
        newest = str(look().get("value"))
    except Exception:  # the machines do not need the parameter any more
        return
    if newest.startswith("ami-") and newest != kept.id:
        place = dotted_path(at("jobs", job.name, "cluster"))
        message = f"there is a newer image, {newest}; the machines of the job `{job.name}` keep {kept.id}"
        warn_user(f"{place}: {message}\n  to start from it, write `ami: {newest}`: that replaces the job's machines")


def find_aws_departures(plan: AwsDl1Plan, before: Outputs) -> Iterator[Wrong]:
    """A warning for each resource with data that this `up` would delete. Raises RefusedError if the account or the
    region changes."""
    there = before.get("region")
    if there and there != plan.region:
        message = f"the stack is in {there}, and AWS cannot move it to another region"
        remedy = "use that region again, and make a new stack for the other one (docs/leaving.md)"
        raise RefusedError([Wrong(("config", "aws:region"), message, remedy)])
    # Without `account` in the file, a review does not know the account.
    account = str(before.get("account") or "")
    if plan.account and account.isdecimal() and account != plan.account:
        message = f"the stack is in the account {account}, and AWS cannot move it to another one"
        remedy = "use that account again, and make a new stack for the other one (docs/leaving.md)"
        raise RefusedError([Wrong(at("account"), message, remedy)])
    repository = str(before.get("imagePushAddress") or "").partition("/")[2]
    group = plan.logs.group_name if plan.logs.enabled else None
    names = {
        "bucket": (before.get("bucket"), plan.bucket.name, plan.bucket.keep),
        "registry": (repository, plan.registry.repository, plan.registry.keep),
        "logs": (before.get("logGroup"), group, False),
    }
    for concern, (old, new, keep) in names.items():
        if concern in (before.get("made") or ()) and old and (concern in plan.taken or old != new):
            lost, fate, remedy = _DEPARTURES[concern]
            message = f"{lost.format(old)}{PROTECTED if keep else fate}"
            yield Wrong(at(concern), message, remedy.format(old))
    jobs: Mapping[str, Any] = before.get("jobs") or {}
    kept = {was for job in plan.jobs.values() for was in (job.name, *job.was)}
    for name, job in jobs.items():
        here = next((one for one in plan.jobs.values() if name in (one.name, *one.was)), None)
        nodes = [node for node in job.get("instances") or () if here is None or node not in here.cluster.nodes]
        if nodes:
            place = at("jobs", name) if name in kept else at("jobs")
            message = f"the machines {quoted_list(nodes)} of the job `{name}` are terminated, with what trains on them"
            yield Wrong(place, message, "let their runs end first, or leave the job as it is")
