# SPDX-License-Identifier: Apache-2.0
"""Secrets."""

from components.oci.types.conventions import calls, oci_type
from components.values.resource_types import LostWith, input_names

VAULT_TYPES = (
    oci_type(
        "oci:Vault/secret:Secret",
        replaced_by=input_names("keyId secretName vaultId"),
        computed=input_names(
            "definedTags description freeformTags metadata rotationConfig secretContent secretGenerationContext "
            "secretRules"
        ),
        lost=LostWith(
            "the secret {name} is scheduled for deletion, and its name stays taken until then; runs that read it fail",
            "give the new one another name",
            ("secretName",),
        ),
        delete=calls("ScheduleSecretDeletion GetSecret"),
        gone=frozenset({"DELETED", "PENDING_DELETION"}),
        renamed={"sourceRegionInformations": "sourceRegionInformation"},
        behaviour="jobs.SecretResource",
    ),
)
