# SPDX-License-Identifier: Apache-2.0
"""What an account has of a stack's prerequisites: the caller, policies by AWS's own simulation, machines and quotas,
images, and what the stack names as existing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from catalog.aws import CAPACITY_BLOCK, aws_machine, vcpu_quota
from components.aws.client.live_ec2 import EGRESS, INGRESS
from components.aws.client.missing_rights import check_rights
from components.aws.plan import AwsDl1Plan
from components.aws.statements import aws_policies
from components.aws.types.security_rules import rule_inputs
from components.plan.model import expand_references
from components.plan.show import to_plain_values
from components.platform.calls import ProviderError
from components.platform.prerequisites import Answer, Check, LiveNetwork, Problem, Question, Remark
from components.platform.review import ReviewedResource, Snapshot
from components.s3 import Session, aws_refusal, code_of, is_missing_in_aws
from schemas.name_suggestions import count_noun

_UNSEEN = "Correct the stack file, or name another profile with --profile"
_SUBNET, _GROUP = "aws:ec2/subnet:Subnet", "aws:ec2/securityGroup:SecurityGroup"
_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
# Codes of what does not exist, beside those of every service.
_MISSING = ("NotFound", "NoSuch", "Unknown", "ParameterNotFound")


class AccountReader:
    """Asks one question at a time, once."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def read(self, what: str, service: str, operation: str, **request: Any) -> Any:
        try:
            return getattr(self.session.client(service), operation)(**request)
        except Exception as error:
            raise aws_refusal(what, error) from error

    def read_if_there(self, what: str, service: str, operation: str, **request: Any) -> Any:
        try:
            return self.read(what, service, operation, **request)
        except ProviderError as error:
            cause = error.__cause__
            if is_missing_in_aws(cause) or any(word in code_of(cause) for word in _MISSING):
                return None
            raise


class AccountChecks:
    def __init__(self, session: Session, question: Question, plan: AwsDl1Plan) -> None:
        self._question, self._plan, self._reader = question, plan, AccountReader(session)
        self._caller = ""

    def others(self) -> Iterator[Check]:
        plan = self._plan
        if not plan.network.create and "network" not in plan.taken:
            yield Check("network", self._check_network)
        elif plan.network.vpc:
            yield self._existing("VPC", plan.network.vpc, "ec2", "describe_vpcs", VpcIds=[plan.network.vpc])
        if not plan.bucket.create and "bucket" not in plan.taken:
            yield self._existing("bucket", plan.bucket.name, "s3", "head_bucket", Bucket=plan.bucket.name)
        if not plan.registry.create and "registry" not in plan.taken and "/" in plan.registry.repository:
            name = plan.registry.repository
            yield self._existing("repository", name, "ecr", "describe_repositories", repositoryNames=[name])
        if not plan.access.create and "access" not in plan.taken:
            yield Check("runs", self._check_runs)
        yield Check("caller", self._check_caller)
        for job in plan.jobs.values():
            yield Check(f"machines of {job.name}", partial(self._check_machines, job))
            yield Check(f"image of {job.name}", partial(self._check_images, job))

    def _existing(self, words: str, name: str, service: str, operation: str, **request: Any) -> Check:
        def ask() -> Iterator[Problem]:
            if self._reader.read_if_there(f"Ask for the {words} {name}", service, operation, **request) is None:
                yield Problem(f"the {words} {name} does not exist in this account and region", _UNSEEN)

        return Check(words, ask)

    def check_account(self) -> Iterator[Answer]:
        try:
            identity = self._reader.read("Ask AWS who calls", "sts", "get_caller_identity")
        except ProviderError as error:
            # Nobody needs a permission for this call: AWS refuses it for credentials, or for the clock.
            if not code_of(error.__cause__):
                raise
            yield Problem(f"AWS does not accept the credentials of the caller: {error.cause}", error.remedy)
            return
        self._caller = str(identity["Arn"])
        if self._plan.account and self._plan.account != identity["Account"]:
            yield Problem(
                f"the stack is for the account {self._plan.account}, and the caller is of {identity['Account']}",
                "Name a profile of that account with --profile, or correct `trainyard:account`",
            )
        self._plan = replace(self._plan, account=str(identity["Account"]))

    def _check_caller(self) -> Iterator[Answer]:
        from components.aws.access_report import deployer_policies

        plan, acts_as = self._plan, self._question.acts_as
        policies = deployer_policies(plan) if acts_as == "deployer" else _policies_of(plan, "users")
        yield from check_rights(self._reader, self._caller, f"the caller, as {acts_as},", plan.stack, policies)

    def _check_runs(self) -> Iterator[Answer]:
        name = self._plan.access.runs_role
        what = f"Ask for the instance profile {name}"
        found = self._reader.read_if_there(what, "iam", "get_instance_profile", InstanceProfileName=name)
        roles = found["InstanceProfile"]["Roles"] if found else []
        if not roles:
            yield Problem(
                f"there is no instance profile {name} with a role, which machines of this stack get",
                f"`trainyard access {self._plan.stack}` prints what it needs; or correct `access: runs`",
            )
            return
        policies = _policies_of(self._plan, "runs")
        yield from check_rights(self._reader, roles[0]["Arn"], f"the role {name}", self._plan.stack, policies)

    def _check_network(self) -> Iterator[Answer]:
        network = self._plan.network
        group, subnet = network.security_group, network.subnet or ""
        what, missing = f"Ask for the subnet {subnet}", "does not exist in this account and region"
        rows = self._reader.read_if_there(what, "ec2", "describe_subnets", SubnetIds=[subnet])
        if not rows:
            yield Problem(f"the subnet {subnet} {missing}", _UNSEEN)
        what = f"Ask for the security group {group}"
        groups = self._reader.read_if_there(what, "ec2", "describe_security_groups", GroupIds=[group])
        if not groups:
            yield Problem(f"the security group {group} {missing}", _UNSEEN)
        if not rows or not groups:
            return
        of_group = [{"Name": "group-id", "Values": [group]}]
        rules = self._reader.read(
            f"Read the rules of {group}", "ec2", "describe_security_group_rules", Filters=of_group
        )["SecurityGroupRules"]  # fmt: skip
        row = rows["Subnets"][0]
        of_subnet = {"cidrBlock": row["CidrBlock"], "mapPublicIpOnLaunch": row.get("MapPublicIpOnLaunch")}
        resources = (
            _live_resource(_SUBNET, "subnet", of_subnet, subnet),
            _live_resource(_GROUP, "group", {"name": groups["SecurityGroups"][0]["GroupName"]}, group),
            # By its machines, the group is that of the nodes.
            _live_resource(_TEMPLATE, "nodes", {"networkInterfaces": [{"securityGroups": [group]}]}, "nodes"),
            *(
                _live_resource(EGRESS if rule["IsEgress"] else INGRESS, rule["SecurityGroupRuleId"], rule_inputs(rule))
                for rule in rules
            ),
        )
        snapshot = Snapshot(self._plan.stack, self._plan.platform, to_plain_values(self._plan), resources)
        yield LiveNetwork(snapshot, f"the security group {group}")

    def _check_machines(self, job: Any) -> Iterator[Answer]:
        """Whether the region offers the type, and the quota leaves room for all nodes of the job."""
        cluster, nodes = job.cluster, len(job.cluster.nodes)
        filters = [{"Name": "instance-type", "Values": [cluster.instance_type]}]
        offered = self._reader.read(
            f"Ask where {cluster.instance_type} is offered", "ec2", "describe_instance_type_offerings",
            LocationType="availability-zone", Filters=filters,
        )["InstanceTypeOfferings"]  # fmt: skip
        zones = sorted(row["Location"] for row in offered)
        if not zones or (self._plan.network.zone and self._plan.network.zone not in zones):
            where = self._plan.network.zone if zones else self._plan.region
            other = f"Zones that have it: {', '.join(zones)}" if zones else "Take another region, or another type"
            yield Problem(f"{cluster.instance_type} is not offered in {where}", other)
            return
        machine = aws_machine(cluster.instance_type)
        quota = vcpu_quota(machine, cluster.market) if machine and cluster.market != CAPACITY_BLOCK else None
        if machine is None or quota is None:
            return
        found = self._reader.read_if_there(
            f"Read the quota {quota.code}", "service-quotas", "get_service_quota", ServiceCode="ec2",
            QuotaCode=quota.code,
        )  # fmt: skip
        if found is None:
            yield Remark(f"the quota {quota.code} ({quota.words}) is not known in this region")
        elif found["Quota"]["Value"] < machine.vcpus * nodes:
            yield Problem(
                f"{job.name} needs {machine.vcpus * nodes} vCPUs for {count_noun(nodes, 'machine')}, and the quota "
                f"{quota.code} ({quota.words}) is {found['Quota']['Value']:.0f}",
                f"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {quota.code} "
                f"--desired-value {machine.vcpus * nodes}",
            )

    def _check_images(self, job: Any) -> Iterator[Answer]:
        """The machines' image, and that of the container where it is in this account's registry."""
        cluster, image = job.cluster, job.cluster.image
        if cluster.image_parameter:
            what = f"Read the parameter {cluster.image_parameter}"
            found = self._reader.read_if_there(what, "ssm", "get_parameter", Name=cluster.image_parameter)
            if found is None:
                yield Problem(f"the parameter {cluster.image_parameter} is not in {self._plan.region}", _UNSEEN)
            image = str(found["Parameter"]["Value"]) if found else None
        if image:
            what = f"Ask for the image {image}"
            rows = self._reader.read_if_there(what, "ec2", "describe_images", ImageIds=[image])
            if not rows or not rows["Images"]:
                yield Problem(
                    f"the machines' image {image} is not in {self._plan.region}, or not shared with this account",
                    "Images belong to a region: name one of this region in `cluster: ami`",
                )
        host = f"{self._plan.account}.dkr.ecr.{self._plan.region}.amazonaws.com"
        address = expand_references(job.image, {"registry": f"{host}/{self._plan.registry.repository}"})
        own, _, name = address.partition("/")
        repository, _, tag = name.rpartition(":")
        # On the local cloud, environments of this machine stand in for containers.
        if own != host or not tag or "@" in name or self._question.where.cloud is not None:
            return
        request = {"repositoryName": repository, "imageIds": [{"imageTag": tag}]}
        if self._reader.read_if_there(f"Ask for the image {address}", "ecr", "describe_images", **request) is None:
            stack = self._plan.stack
            yield Problem(
                f"the image {address} is not in the registry",
                f"trainyard image build {stack}; trainyard image push {stack}",
            )


def _policies_of(plan: AwsDl1Plan, who: str) -> tuple[Any, ...]:
    return tuple(policy for policy in aws_policies(plan) if policy.who == who)


def _live_resource(token: str, name: str, inputs: Mapping[str, Any], identity: str = "") -> ReviewedResource:
    return ReviewedResource(token, name, f"live::{token}::{name}", "", inputs, id=identity or name)
