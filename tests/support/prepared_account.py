# SPDX-License-Identifier: Apache-2.0
"""An account of AWS in which others prepared everything that a stack uses, and ways to break each part."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from localcloud import admin
from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients
from trainyard.cli.main import main

ACCOUNT, ROLE, REPOSITORY, BUCKET = "123456789012", "company-nodes", "company/training", "company-training-data"
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
Undo = Callable[[], object]


class PreparedAccount:
    """`file`: the stack file of the team."""

    def __init__(self, cloud: Cloud, home: Path) -> None:
        self.cloud, self.aws = cloud, AwsClients(cloud)
        self.file = home / "Pulumi.risk-aws.yaml"
        (home / "Pulumi.yaml").write_text("name: risk\nruntime: python\n")
        ec2 = self.aws["ec2"]
        vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
        self.subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.0.0/24")["Subnet"]["SubnetId"]
        self.group = ec2.create_security_group(VpcId=vpc, GroupName="company", Description="nodes")["GroupId"]
        self.allow_inside()
        self.make_bucket()
        self.make_repository()
        iam = self.aws["iam"]
        iam.create_group(GroupName="risk-people")
        iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=json.dumps(_TRUST))
        iam.create_instance_profile(InstanceProfileName=ROLE)
        self.add_role()
        self.write_stack()
        printed = json.loads(CliRunner().invoke(main, ["access", str(self.file), "--format", "json"]).stdout)
        (self.document,) = (one["document"] for one in printed["policies"] if ROLE in one["attachedTo"])
        self.document = json.loads(self.document) if isinstance(self.document, str) else self.document
        self.write_policy(self.document["Statement"])

    def write_stack(self, **changes: Any) -> None:
        own = {
            "team": "risk", "environment": "prod", "platform": "aws", "account": ACCOUNT,
            "access": {"existing": True, "users": {"group": "risk-people"}, "runs": ROLE},
            "network": {"subnet": self.subnet, "securityGroup": self.group},
            "bucket": {"existing": BUCKET}, "registry": {"existing": REPOSITORY},
            "jobs": {
                "ddp": {
                    "framework": "pytorch", "image": "${registry}:1.0", "shape": "c7i.2xlarge",
                    "roles": {"main": 1, "worker": 1}, "options": {"backend": "gloo"}, "command": "train.py",
                    "cluster": {"ami": "none"}, "runs": {"base": {}},
                },
            },
        }  # fmt: skip
        config = {"aws:region": "us-east-1"} | {f"trainyard:{key}": value for key, value in {**own, **changes}.items()}
        self.file.write_text(yaml.safe_dump({"config": config}, sort_keys=False))

    def write_policy(self, statements: list[Any]) -> None:
        document = json.dumps({**self.document, "Statement": statements})
        self.aws["iam"].put_role_policy(RoleName=ROLE, PolicyName="training", PolicyDocument=document)

    @property
    def _inside(self) -> dict[str, Any]:
        return {"GroupId": self.group, "IpPermissions": [
            {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": self.group}]}
        ]}  # fmt: skip

    def allow_inside(self) -> None:
        self.aws["ec2"].authorize_security_group_ingress(**self._inside)

    def make_bucket(self) -> None:
        self.aws["s3"].create_bucket(Bucket=BUCKET)

    def make_repository(self) -> None:
        self.aws["ecr"].create_repository(repositoryName=REPOSITORY)

    def add_role(self) -> None:
        self.aws["iam"].add_role_to_instance_profile(InstanceProfileName=ROLE, RoleName=ROLE)

    # Ways to break it.

    def without_rule(self) -> Undo:
        self.aws["ec2"].revoke_security_group_ingress(**self._inside)
        return self.allow_inside

    def without_bucket(self) -> Undo:
        self.aws["s3"].delete_bucket(Bucket=BUCKET)
        return self.make_bucket

    def without_repository(self) -> Undo:
        self.aws["ecr"].delete_repository(repositoryName=REPOSITORY)
        return self.make_repository

    def without_statement(self) -> Undo:
        statements = self.document["Statement"]
        self.write_policy(statements[1:])
        return lambda: self.write_policy(statements)

    def without_role(self) -> Undo:
        self.aws["iam"].remove_role_from_instance_profile(InstanceProfileName=ROLE, RoleName=ROLE)
        return self.add_role

    def with_quota(self, code: str, value: int) -> Undo:
        admin.add_fault(self.cloud, "limit", limit=code, value=value)
        return lambda: admin.clear_faults(self.cloud)

    def with_stack(self, **changes: Any) -> Undo:
        self.write_stack(**changes)
        return self.write_stack
