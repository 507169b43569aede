# SPDX-License-Identifier: Apache-2.0
"""The pack knows the types that training needs. Of any other, it cannot say whom it lets in or what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from components.values.resource_types import find_resource_type
from policies.rule import JudgedResource, JudgedStack, StackRule, StackVerdict, fail_because

# Not of any cloud: the stack itself, and references to others.
OF_ENGINE = ("pulumi:pulumi:Stack", "pulumi:pulumi:StackReference")
BUCKET = "oci:ObjectStorage/bucket:Bucket"
PEERING = "aws:ec2/vpcPeeringConnection:VpcPeeringConnection"


def judge_types(stack: JudgedStack) -> Iterator[StackVerdict]:
    for resource in stack.resources:
        if not resource.is_component and resource.type not in OF_ENGINE and find_resource_type(resource.type) is None:
            yield resource, fail_because(f"no rule knows the type {resource.type}")


RULE = StackRule(
    id="unjudged-types",
    # Advisory, because a team's program may have whatever it needs beside training.
    level="advisory",
    asks="Every resource is of a type that the pack knows.",
    remedy="read what it opens, grants and costs; to allow such types only with a waiver, set this rule to mandatory",
    types=(),
    judge=judge_types,
    passes={
        "a bucket": JudgedStack((JudgedResource(BUCKET, {}, "bucket"),)),
        "a component": JudgedStack((JudgedResource("vision:index:Network", {}, "network", is_component=True),)),
    },
    fails={"a peering": JudgedStack((JudgedResource(PEERING, {"peerOwnerId": "123456789012"}, "peering"),))},
    # The type of a resource is always known.
    unknown={},
)
