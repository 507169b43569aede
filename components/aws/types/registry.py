# SPDX-License-Identifier: Apache-2.0
"""Image repositories and log groups."""

from components.values.resource_types import LostWith, ResourceType, input_names

REGISTRY_TYPES = (
    ResourceType(
        token="aws:ecr/repository:Repository",
        tags="tags",
        replaced_by=input_names("encryptionConfigurations name"),
        lost=LostWith(
            "the repository {name} goes with every image in it, which jobs may still name",
            "keep it (`keep: true`), or name it as `registry: { existing: … }`; push the images elsewhere first",
            ("name",),
        ),
    ),
    ResourceType(
        token="aws:ecr/lifecyclePolicy:LifecyclePolicy",
        replaced_by=input_names("policy repository"),
    ),
    ResourceType(
        token="aws:cloudwatch/logGroup:LogGroup",
        tags="tags",
        replaced_by=input_names("logGroupClass name namePrefix"),
        computed=input_names("logGroupClass"),
        lost=LostWith(
            "the log group {name} goes with every line that runs have written",
            "read what is needed first (`trainyard runs`)",
            ("name",),
        ),
    ),
)
