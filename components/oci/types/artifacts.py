# SPDX-License-Identifier: Apache-2.0
"""Image repositories."""

from components.values.resource_types import LostWith, ResourceType, input_names

ARTIFACTS_TYPES = (
    ResourceType(
        token="oci:Artifacts/containerRepository:ContainerRepository",
        tags="freeformTags",
        replaced_by=input_names("displayName"),
        computed=input_names("definedTags freeformTags isImmutable isPublic readme"),
        lost=LostWith(
            "the repository {name} goes with every image in it, which jobs may still name",
            "keep it (`keep: true`), or name it as `registry: { existing: … }`; push the images elsewhere first",
            ("displayName",),
        ),
    ),
)
