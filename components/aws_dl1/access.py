# SPDX-License-Identifier: Apache-2.0
"""The nodes' role with its instance profile, and the policies of nodes and users."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components.aws_dl1.plan import AwsDl1Plan
from components.aws_dl1.statements import TRUST, AwsPolicy, policies


@dataclass(frozen=True)
class AccessArgs:
    plan: AwsDl1Plan
    prefix: str
    tags: Mapping[str, str]


class Access(pulumi.ComponentResource):
    """Who may do what. Nodes depend on this component; IAM may take some seconds longer to let them act."""

    role: pulumi.Output[str]
    profile: pulumi.Output[str]

    def __init__(self, name: str, args: AccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("trainyard:aws-dl1:Access", name, None, opts)
        self._args = args
        self._inside = pulumi.ResourceOptions(parent=self)
        self._tags = dict(args.tags)
        self.role = self._role() if args.plan.access.make_runs_role else pulumi.Output.from_input(self._named_role)
        self.profile = aws.iam.InstanceProfile(
            "nodes", name=f"{args.prefix}-nodes", role=self.role, tags=self._tags, opts=self._inside
        ).name
        for policy in policies(args.plan):
            self._attach(policy)
        self.register_outputs({"role": self.role, "profile": self.profile})

    @property
    def _named_role(self) -> str:
        return self._args.plan.access.runs_role

    def _role(self) -> pulumi.Output[str]:
        return aws.iam.Role(
            "nodes",
            name=self._named_role,
            description=f"Nodes of distributed training of {self._args.prefix}",
            assume_role_policy=json.dumps(TRUST, sort_keys=True),
            tags=self._tags,
            opts=self._inside,
        ).name

    def _attach(self, policy: AwsPolicy) -> None:
        """To the nodes' role, or to the users' group, or to their role."""
        arns: dict[str, pulumi.Input[str]] = {arn.rpartition("/")[2]: arn for arn in policy.managed}
        if policy.document is not None:
            arns[policy.name] = self._policy(policy)
        access = self._args.plan.access
        principals = [("role", self.role)] if policy.who == "runs" else []
        if policy.who == "users":
            named = (("group", access.users_group), ("role", access.users_role))
            principals += [(kind, pulumi.Output.from_input(name)) for kind, name in named if name]
        for key, arn in arns.items():
            for kind, principal in principals:
                attachment = aws.iam.RolePolicyAttachment if kind == "role" else aws.iam.GroupPolicyAttachment
                attachment(f"{policy.who}-{kind}-{key}", policy_arn=arn, opts=self._inside, **{kind: principal})

    def _policy(self, policy: AwsPolicy) -> pulumi.Output[str]:
        return aws.iam.Policy(
            policy.name,
            name=policy.name,
            description=f"Distributed training of {self._args.prefix}: {self._args.plan.access.mode}",
            policy=json.dumps(policy.document, sort_keys=True),
            tags=self._tags,
            opts=self._inside,
        ).arn
