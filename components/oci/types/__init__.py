# SPDX-License-Identifier: Apache-2.0
"""What is known of the resource types of Pulumi's provider `oci`: one row each."""

from collections.abc import Mapping

from components.oci.types.artifacts import ARTIFACTS_TYPES
from components.oci.types.core import CORE_TYPES
from components.oci.types.data_science import DATA_SCIENCE_TYPES
from components.oci.types.identity import IDENTITY_TYPES
from components.oci.types.logging import LOGGING_TYPES
from components.oci.types.object_storage import OBJECT_STORAGE_TYPES
from components.oci.types.oci_resource_type import OciResourceType
from components.oci.types.vault import VAULT_TYPES
from components.values.resource_types import by_token

RESOURCE_TYPES = by_token(
    ARTIFACTS_TYPES, CORE_TYPES, DATA_SCIENCE_TYPES, IDENTITY_TYPES, LOGGING_TYPES, OBJECT_STORAGE_TYPES, VAULT_TYPES
)
# Those whose calls are known: the local plugin serves them, and the deployer's policy grants them.
SERVED_TYPES: Mapping[str, OciResourceType] = {
    token: row for token, row in RESOURCE_TYPES.items() if isinstance(row, OciResourceType)
}
