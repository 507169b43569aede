# SPDX-License-Identifier: Apache-2.0
"""Secrets."""

from components.values.resource_types import LostWith, ResourceType, input_names

VAULT_TYPES = (
    ResourceType(
        token="oci:Vault/secret:Secret",
        tags="freeformTags",
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
    ),
)
