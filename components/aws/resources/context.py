# SPDX-License-Identifier: Apache-2.0
"""What every AWS component needs: the plan, values that only AWS knows, and the packages of pulumi_aws. Their modules
are imported on first use only: `ec2` alone has 200."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pulumi
import pulumi_aws

from components import lazy_sdk
from components.aws.plan import AwsDl1Plan
from components.outputs import Borrowed
from components.runs import Filler

PACKAGES = ("cloudwatch", "ec2", "ecr", "iam", "s3", "secretsmanager", "vpc")


@dataclass(frozen=True)
class Context(Filler):
    """Bucket, registry, log group and role may come from the stack under `uses`."""

    plan: AwsDl1Plan
    account: str
    borrowed: Borrowed

    @property
    def registry_host(self) -> str:
        return f"{self.account}.dkr.ecr.{self.plan.region}.amazonaws.com"

    @cached_property
    def registry(self) -> pulumi.Output[str]:
        """Where images are pushed: host and repository."""
        own = pulumi.Output.from_input(f"{self.registry_host}/{self.plan.registry.repository}")
        return self.borrowed.get("registry", "imagePushAddress") or own

    @cached_property
    def bucket(self) -> pulumi.Output[str]:
        return self.borrowed.get("bucket", "bucket") or pulumi.Output.from_input(self.plan.bucket.name)

    @cached_property
    def bucket_uri(self) -> pulumi.Output[str]:
        return pulumi.Output.concat("s3://", self.bucket)

    @cached_property
    def log_group(self) -> pulumi.Output[str] | None:
        logs = self.plan.logs
        if not logs.enabled:
            return None
        return self.borrowed.get("logs", "logGroup") or pulumi.Output.from_input(logs.group_name)

    @cached_property
    def answers(self) -> Mapping[str, pulumi.Output[str]]:
        return {"registry": self.registry, "bucket": self.bucket_uri}


class AwsComponent(pulumi.ComponentResource):
    """A component of a stack on AWS. What it makes is inside of it, and has its tags."""

    def __init__(
        self, kind: str, name: str, tags: Mapping[str, str], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(f"trainyard:aws-dl1:{kind}", name, None, opts)
        self._tags, self._inside = dict(tags), pulumi.ResourceOptions(parent=self)

    def _make(
        self, kind: Any, name: str, opts: pulumi.ResourceOptions | None = None, called: str = "", /, **inputs: Any
    ) -> Any:
        """Makes a resource. `called`: its tag `Name`, if AWS's console lists it by that."""
        tags = resource_tags(self._tags, called) if called else self._tags
        return kind(name, opts=opts or self._inside, **{"tags": tags, **inputs})


def resource_tags(tags: Mapping[str, str], name: str) -> dict[str, str]:
    """The tags of a resource that AWS's console lists by its tag `Name`."""
    return {**tags, "Name": name}


def make_aws_lazy() -> None:
    """Replaces packages that are not imported yet with lazy ones."""
    lazy_sdk.make_packages_lazy(pulumi_aws, PACKAGES)


def look_up_in_aws(package: str, function: str, **arguments: Any) -> Mapping[str, Any]:
    """The result of a function of the provider, with the provider's names."""
    return lazy_sdk.invoke_lookup(pulumi_aws, f"aws:{package}/{function}:{function}", **arguments)
