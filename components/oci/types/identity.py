# SPDX-License-Identifier: Apache-2.0
"""Compartments, dynamic groups and policies."""

from components.values.resource_types import ResourceType, input_names

IDENTITY_TYPES = (
    ResourceType(
        token="oci:Identity/dynamicGroup:DynamicGroup",
        tags="freeformTags",
        replaced_by=input_names("compartmentId name"),
        computed=input_names("definedTags freeformTags"),
    ),
    ResourceType(
        token="oci:Identity/policy:Policy",
        tags="freeformTags",
        replaced_by=input_names("compartmentId name"),
        computed=input_names("definedTags freeformTags versionDate"),
    ),
    ResourceType(
        token="oci:Identity/compartment:Compartment",
        tags="freeformTags",
        computed=input_names("compartmentId definedTags freeformTags"),
    ),
)
