# SPDX-License-Identifier: Apache-2.0
"""Secrets."""

from components.oci.types.oci_resource_type import oci_type
from components.values.resource_types import LostWith, inputs_in_reviews

VAULT_TYPES = (
    oci_type(
        "oci:Vault/secret:Secret", replaced_by="keyId secretName vaultId",
        computed=(
            "definedTags description freeformTags metadata rotationConfig secretContent secretGenerationContext "
            "secretRules"
        ),
        lost=LostWith(
            "the secret {name} is scheduled for deletion, and its name stays taken until then; runs that read it fail",
            "give the new one another name", ("secretName",),
        ),
        delete="ScheduleSecretDeletion GetSecret", gone="DELETED PENDING_DELETION",
        renamed={"sourceRegionInformations": "sourceRegionInformation"}, behaviour="jobs.SecretResource",
        ocid_kind="vaultsecret", compared="", statement_kind="secret", name_input="secretName",
        in_reviews=inputs_in_reviews(planned="secretContent", placed="compartmentId keyId secretName vaultId"),
    ),
)  # fmt: skip
