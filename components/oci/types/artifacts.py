# SPDX-License-Identifier: Apache-2.0
"""Image repositories."""

from components.oci.types.conventions import oci_type
from components.values.resource_types import LostWith, input_names

ARTIFACTS_TYPES = (
    oci_type(
        "oci:Artifacts/containerRepository:ContainerRepository",
        replaced_by=input_names("displayName"),
        computed=input_names("definedTags freeformTags isImmutable isPublic readme"),
        lost=LostWith(
            "the repository {name} goes with every image in it, which jobs may still name",
            "keep it (`keep: true`), or name it as `registry: { existing: … }`; push the images elsewhere first",
            ("displayName",),
        ),
        existing="registry: {{ existing: {} }}",
        shows_system_tags=True,
    ),
)
