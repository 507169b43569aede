# SPDX-License-Identifier: Apache-2.0
"""The nodes' role with its instance profile, and the policies of nodes and users."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components.aws.plan import AwsDl1Plan
from components.aws.resources.context import AwsComponent
from components.aws.statements import TRUST, AwsPolicy, aws_policies

KEY_PAIR = "trainyard:index:KeyPair"


@dataclass(frozen=True)
class AccessArgs:
    plan: AwsDl1Plan
    prefix: str
    tags: Mapping[str, str]


class Access(AwsComponent):
    """Role and policies. Nodes depend on this component. IAM changes may take effect some seconds later."""

    role: pulumi.Output[str]
    profile: pulumi.Output[str]

    def __init__(self, name: str, args: AccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Access", name, args.tags, opts)
        self._args = args
        self.role = self._role() if args.plan.access.make_runs_role else pulumi.Output.from_input(self._named_role)
        named = f"{args.prefix}-nodes"
        self.profile = self._make(aws.iam.InstanceProfile, "nodes", name=named, role=self.role).name
        for policy in aws_policies(args.plan):
            self._attach(policy)
        self.register_outputs({"role": self.role, "profile": self.profile})

    @property
    def _named_role(self) -> str:
        return self._args.plan.access.runs_role

    def _role(self) -> pulumi.Output[str]:
        named = {
            "name": self._named_role, "description": f"Nodes of distributed training of {self._args.prefix}",
            "permissions_boundary": self._args.plan.access.permissions_boundary,
        }  # fmt: skip
        return self._make(aws.iam.Role, "nodes", assume_role_policy=json.dumps(TRUST, sort_keys=True), **named).name

    def _attach(self, policy: AwsPolicy) -> None:
        """Attaches a policy to the nodes' role, or to the users' group or role."""
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
        described = f"Distributed training of {self._args.prefix}"
        named = {"name": policy.name, "policy": json.dumps(policy.document, sort_keys=True), "description": described}
        # IAM cannot change a description: another one would take the nodes' rights away until the policy is made anew.
        # Earlier releases wrote the mode into it.
        kept = pulumi.ResourceOptions(parent=self, ignore_changes=["description"])
        return self._make(aws.iam.Policy, policy.name, kept, **named).arn


class KeyPair(pulumi.CustomResource):
    """An RSA key pair, a resource of our own provider. Another `rotation` makes another one."""

    private_key: pulumi.Output[str]

    def __init__(self, name: str, rotation: int, opts: pulumi.ResourceOptions) -> None:
        outputs = {"publicKey": None, "privateKey": None, "fingerprint": None}
        secret = pulumi.ResourceOptions(additional_secret_outputs=["privateKey"])
        super().__init__(KEY_PAIR, name, {**outputs, "rotation": rotation}, pulumi.ResourceOptions.merge(opts, secret))

    @property
    def private(self) -> pulumi.Output[str]:
        return pulumi.Output.secret(pulumi.get(self, "privateKey"))


def keep_secret(
    name: str, called: str, why: str, value: pulumi.Input[str], tags: Mapping[str, str], opts: pulumi.ResourceOptions
) -> tuple[pulumi.Output[str], aws.secretsmanager.SecretVersion]:
    """Makes a secret with its value. Returns its name, and the version that must exist before nodes read it."""
    # By default, the name of a deleted secret is blocked for days, and the stack could not be made again.
    named = {"name": called, "description": why, "recovery_window_in_days": 0}
    secret = aws.secretsmanager.Secret(name, tags=dict(tags), opts=opts, **named)
    hidden = pulumi.Output.secret(value)
    version = aws.secretsmanager.SecretVersion(name, secret_id=secret.id, secret_string=hidden, opts=opts)
    return secret.name, version
