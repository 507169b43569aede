# SPDX-License-Identifier: Apache-2.0
"""Image repositories."""

from components.oci.types.oci_resource_type import oci_type
from components.values.resource_types import KeptBy, LostWith, inputs_in_reviews

ARTIFACTS_TYPES = (
    oci_type(
        "oci:Artifacts/containerRepository:ContainerRepository", replaced_by="displayName",
        computed="definedTags freeformTags isImmutable isPublic readme",
        lost=LostWith(
            "the repository {name} goes with every image in it, which jobs may still name",
            "keep it (`keep: true`), or name it as `registry: { existing: … }`; push the images elsewhere first",
            ("displayName",),
        ),
        existing="registry: {{ existing: {} }}", shows_system_tags=True, words="repository", ocid_kind="containerrepo",
        compared="isPublic isImmutable", judged="isPublic", is_listed_in_part=True, statement_kind="repository",
        name_input="displayName", part="repository", immutable_by=KeptBy("isImmutable", (True,)),
        image_host=r"([a-z0-9-]+\.ocir\.io|ocir\.[a-z0-9-]+\.oci\.oraclecloud\.com)/(?P<owner>[^/]+)",
        in_reviews=inputs_in_reviews(
            judged="isPublic",
            placed="compartmentId isImmutable",
            plain={"text about the images": "readme"},
        ),
    ),
)  # fmt: skip
