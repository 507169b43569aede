# SPDX-License-Identifier: Apache-2.0
"""Bills, people and clean-up scripts see only in the tags who owns a resource."""

from typing import Any

from components.values.resource_types import TypesWith
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because

WANTED = ("stack", "team", "environment")


def judge_tags(resource: JudgedResource) -> PolicyVerdict:
    missing = [name for name in WANTED if not resource.tags.get(name)]
    return fail_because(f"has no tag {', '.join(f'`{name}`' for name in missing)}") if missing else PASS


def _tagged_bucket(**tags: Any) -> JudgedResource:
    return JudgedResource("oci:ObjectStorage/bucket:Bucket", {"freeformTags": tags})


RULE = PolicyRule(
    id="missing-tags",
    level="mandatory",
    asks=f"Everything that can be tagged says its {', '.join(WANTED[:-1])} and {WANTED[-1]}.",
    remedy="add them to freeformTags (to tags, for a run or a resource of AWS)",
    types=TypesWith(lambda row: row.tags),
    judge=judge_tags,
    passes={
        "all three": _tagged_bucket(stack="vision-dev", team="vision", environment="dev", owner="ann"),
        "a run": JudgedResource(
            "trainyard:index:Run", {"tags": {"stack": "vision-dev", "team": "vision", "environment": "dev"}}
        ),
    },
    fails={
        "none at all on AWS": JudgedResource("aws:ec2/instance:Instance", {"launchTemplate": {"id": "lt-0a1b2c3d"}}),
        "none at all": JudgedResource("oci:Core/vcn:Vcn", {}),
        "one is missing": _tagged_bucket(stack="vision-dev", team="vision"),
        "one is empty": _tagged_bucket(stack="vision-dev", team="", environment="dev"),
    },
    unknown={
        "a tag of another resource": _tagged_bucket(
            stack="vision-dev", team=Unknown("freeformTags.team"), environment="dev"
        ),
        "all decided elsewhere": JudgedResource("oci:Core/vcn:Vcn", {"freeformTags": Unknown("freeformTags")}),
    },
)
