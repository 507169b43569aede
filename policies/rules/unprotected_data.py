# SPDX-License-Identifier: Apache-2.0
"""`pulumi destroy`, or a change that replaces a bucket, deletes what it keeps. Protection makes both stop and ask."""

from components.values.resource_types import types_of_part
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, fail_because

BUCKET, REPOSITORY = "oci:ObjectStorage/bucket:Bucket", "aws:ecr/repository:Repository"
# The environment of stacks for one machine: their data is scratch by its name, and goes when the stack goes.
SCRATCH_ENVIRONMENT = "local"


def judge_protection(resource: JudgedResource) -> PolicyVerdict:
    # The engine does not tell a pack whether the resource also survives the stack (retainOnDelete).
    is_safe = resource.protect or resource.tags.get("environment") == SCRATCH_ENVIRONMENT
    return PASS if is_safe else fail_because("it is deleted with the stack, and its content too")


RULE = PolicyRule(
    id="unprotected-data",
    # Advisory, because a stack may choose it: scratch data goes with its stack.
    level="advisory",
    asks="Buckets and repositories are protected, and outlive a mistake.",
    remedy="protect it (`keep: true` under `trainyard:bucket` or `trainyard:registry`, which is the default)",
    types=types_of_part("bucket", "repository"),
    judge=judge_protection,
    passes={
        "a bucket": JudgedResource(BUCKET, {}, protect=True),
        "a repository": JudgedResource(REPOSITORY, {}, protect=True),
        "of a stack for one machine": JudgedResource(BUCKET, {"freeformTags": {"environment": SCRATCH_ENVIRONMENT}}),
    },
    fails={
        "a bucket, not protected": JudgedResource(BUCKET, {}),
        "a repository, not protected": JudgedResource(REPOSITORY, {}),
    },
    # The options of a resource are always known.
    unknown={},
)
